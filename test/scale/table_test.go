package scale_test

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// printTable prints the numbers as Markdown, with what they are held to.
func printTable(all []*comparison) {
	rows := [][]string{{"", "limit"}, {"---", "---"}}
	for _, row := range []struct {
		title, limit string
		value        func(*comparison) string
	}{
		{"time, Fairlead", "", func(c *comparison) string {
			return seconds(len(c.fairlead), func(i int) time.Duration { return c.fairlead[i].took })
		}},
		{"time, bare client", "", func(c *comparison) string {
			return seconds(len(c.bare), func(i int) time.Duration { return c.bare[i].took })
		}},
		{"ratio", fmt.Sprintf("%.2f", maxRatio), func(c *comparison) string { return fmt.Sprintf("%.3f", c.ratio()) }},
		{"processor time per workload, Fairlead", fmt.Sprint(maxProcessor), func(c *comparison) string { return fmt.Sprint(c.processor(c.fairlead)) }},
		{"processor time per workload, bare client", "", func(c *comparison) string { return fmt.Sprint(c.processor(c.bare)) }},
		{"ratio of processor times", fmt.Sprint(maxProcessorRatio), func(c *comparison) string { return fmt.Sprintf("%.2f", c.processorRatio()) }},
		{"writes per workload", "1", func(c *comparison) string {
			return fmt.Sprintf("%.3f", c.worst(func(t trip) float64 { return t.account.deployments })/float64(c.deployments))
		}},
		{"writes per relabelled namespace", "1", func(c *comparison) string {
			return fmt.Sprintf("%.3f", c.worst(func(t trip) float64 { return t.account.namespaces })/float64(c.relabelled()))
		}},
		{"other writes per workload, without events", fmt.Sprint(maxOthers), func(c *comparison) string {
			return fmt.Sprintf("%.3f", c.worst(c.otherWrites))
		}},
		{"lists by anybody, per reconcile", fmt.Sprint(maxLists), func(c *comparison) string {
			return fmt.Sprintf("%.3f", c.worst(func(t trip) float64 { return t.account.lists.total() / t.account.reconciles }))
		}},
		{"answers 429 to anybody", "0", func(c *comparison) string {
			return fmt.Sprint(c.worst(func(t trip) float64 { return t.account.tooMany }))
		}},
		{"memory, at most", fmt.Sprintf("%d MiB", maxMemory), func(c *comparison) string {
			return fmt.Sprintf("%.0f MiB", c.worst(func(t trip) float64 { return t.memory.peak }))
		}},
		{"memory, first to last tenth", fmt.Sprintf("±%.0f %%", 100*maxGrowth), func(c *comparison) string {
			var each []string
			for _, t := range c.fairlead {
				each = append(each, fmt.Sprintf("%+.1f %%", 100*t.memory.growth()))
			}
			return strings.Join(each, ", ")
		}},
	} {
		cells := []string{row.title, row.limit}
		for _, c := range all {
			if len(c.fairlead) == 0 || len(c.bare) == 0 {
				cells = append(cells, "not measured")
				continue
			}
			cells = append(cells, row.value(c))
		}
		rows = append(rows, cells)
	}
	for _, c := range all {
		rows[0], rows[1] = append(rows[0], c.String()), append(rows[1], "---")
	}
	fmt.Printf("\nBatches of %d, no delay, %d replicas each. The operator takes no lease (--leader-elect=false).\n%s\n",
		batchSize, replicas, aligned(rows))
}

// seconds are the sum of some times, and each of them.
func seconds(n int, of func(int) time.Duration) string {
	var sum time.Duration
	var each []string
	for i := range n {
		sum += of(i)
		each = append(each, fmt.Sprintf("%.1f", of(i).Seconds()))
	}
	return fmt.Sprintf("%.1f s (%s)", sum.Seconds(), strings.Join(each, ", "))
}

func aligned(rows [][]string) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var text strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			filler := " "
			if cell == "---" {
				filler = "-"
			}
			text.WriteString("| " + cell + strings.Repeat(filler, widths[i]-utf8.RuneCountInString(cell)) + " ")
		}
		text.WriteString("|\n")
	}
	return text.String()
}
