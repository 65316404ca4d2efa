package tool

// Registry holds the tools of one run, in the order in which they were added.
type Registry struct {
	tools []Tool
}
