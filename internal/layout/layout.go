// Package layout is a test: imports point one way, every package is on the map, and files and functions stay readable.
package layout
