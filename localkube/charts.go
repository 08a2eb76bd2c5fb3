package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/localkube/internal/charts"
)

func newChartsCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "charts --dir DIR",
		Short: "Leave real Istio charts as DIR/<version>/<chart>",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				return usageError{errors.New("--dir is required: where the charts go")}
			}
			return charts.Write(cmd.Context(), dir, func(step string) { cmd.Println(step) })
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "where the charts go")
	return cmd
}
