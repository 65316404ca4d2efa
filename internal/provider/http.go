package provider

import "net/http"

// HTTPDoer is the part of http.Client that a provider needs.
type HTTPDoer interface {
	Do(*http.Request) (*http.Response, error)
}
