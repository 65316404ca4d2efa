//go:build !linux

package sandbox

import "errors"

// RelayCommand is the hidden subcommand of boxes with a network.
const RelayCommand = "box-relay"

// Relay is part of the Linux boxes.
func Relay([]string) error { return errors.New("box relay: there is no box on this system") }
