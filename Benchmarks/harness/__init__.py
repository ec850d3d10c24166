"""The benchmark of Drydock beside a bare event loop and the caching proxies of Debian; Documentation/internals/speed.md explains it."""
