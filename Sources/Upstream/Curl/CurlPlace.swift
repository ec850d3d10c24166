// Where libcurl is to connect: what its URL parser and its table of addresses are told of an origin, worked out once.

import CLibcurl

/// An origin as libcurl knows it; loop-bound, held by the ``Origin`` and by every handle that uses its URL.
final class CurlPlace {
    /// What libcurl connects to, parsed already; a request's target never passes through its URL parser.
    // Freed with this object; handles that use it hold that.
    let url: OpaquePointer
    /// Host and port, as libcurl is told the addresses of a name: of the origin, or of its proxy.
    let pinName: String
    /// What libcurl takes for the URL of a proxy; empty: there is none.
    let proxyURL: String

    /// Nil where libcurl takes no such URL.
    /// - Parameter alias: the name that stands for its proxy.
    init?(_ place: Origin, proxyAlias alias: String? = nil) {
        guard let url = curl_url() else { return nil }
        let text = "\(place.isTLS ? "https" : "http")://\(place.connectName):\(place.url.port)/"
        guard curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK else {
            curl_url_cleanup(url)
            return nil
        }
        self.url = url
        if let proxy = place.proxy, let alias {
            pinName = "\(alias):\(proxy.port)"
            proxyURL = "http://\(pinName)"
        } else {
            pinName = "\(place.url.name(numericHost: nil)):\(place.url.port)"
            proxyURL = ""
        }
    }

    deinit { curl_url_cleanup(url) }
}

@available(*, unavailable) extension CurlPlace: Sendable {}
