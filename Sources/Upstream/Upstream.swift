// The room Upstream.
