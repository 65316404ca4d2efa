//go:build !linux

package sandbox

import (
	"context"
	"runtime"
)

func detect(_ context.Context, _ Config) (Box, Report, error) {
	if runtime.GOOS == "windows" {
		return offBox{}, Report{Mode: "off", Backend: "off",
			Warnings: []string{"Windows has no sandbox for commands: bash = \"enforce\" is ignored and commands run unconfined"}}, nil
	}
	return unavailable(Report{Reason: "there is no box for " + runtime.GOOS + " yet",
		Mend: "run on Linux with bubblewrap, or set [sandbox] bash = \"off\" to run commands unconfined"})
}
