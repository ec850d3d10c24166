// The room ProxyServer.
