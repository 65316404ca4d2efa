//go:build !linux

package sandbox

import "errors"

// StageCommand is the hidden subcommand of reduced boxes.
const StageCommand = "box-stage"

// Stage is part of the Linux boxes.
func Stage() error { return errors.New("box stage: there is no reduced box on this system") }

// RelayCommand is the hidden subcommand of boxes with a network.
const RelayCommand = "box-relay"

// Relay is part of the Linux boxes.
func Relay([]string) error { return errors.New("box relay: there is no box on this system") }
