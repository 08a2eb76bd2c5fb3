// Package arguments splits a command line into several.
package arguments

// Split divides arguments at each "--".
func Split(args []string) [][]string {
	var groups [][]string
	for i, arg := range args {
		if arg == "--" {
			continue
		}
		if i == 0 || args[i-1] == "--" {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], arg)
	}
	return groups
}
