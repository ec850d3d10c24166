// Tests of Upstream.
