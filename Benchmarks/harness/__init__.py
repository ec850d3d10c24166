"""The benchmark of Drydock beside a bare event loop and the caching proxies of Debian; Documentation/speed.md explains it."""
