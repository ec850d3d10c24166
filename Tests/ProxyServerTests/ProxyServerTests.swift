// Tests of ProxyServer.
