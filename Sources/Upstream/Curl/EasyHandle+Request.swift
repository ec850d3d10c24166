// One request as options of an easy handle.

import CLibcurl
import EventLoop
import HTTPWire

/// What the options of a handle were set to last.
struct AppliedOptions {
    enum Shape { case get, head, upload }

    /// It is held as long as the handle may use its URL.
    var place: CurlPlace?
    /// What goes into the request line.
    var target = ""
    var shape: Shape?
    var customMethod: String?
    var tls: TLSOptions?
    var isFresh = false
    var proxyURL = ""
}

extension EasyHandle {
    /// - Parameters:
    ///   - line: what goes into the request line.
    ///   - isFresh: a connection of its own, not one from the cache.
    func apply(_ request: UpstreamRequest, _ line: String, _ place: Origin, isFresh: Bool) {
        rewind()
        if let target, applied.place !== target {
            c_curl_set_pointer(raw, CURLOPT_CURLU, UnsafeMutableRawPointer(target.url))
            applied.place = target
        }
        if applied.target != line {
            c_curl_set_string(raw, CURLOPT_REQUEST_TARGET, line)
            applied.target = line
        }
        if applied.isFresh != isFresh {
            set(CURLOPT_FRESH_CONNECT, isFresh ? 1 : 0)
            applied.isFresh = isFresh
        }
        applyMethod(request)
        applyFields(request)
        applyProxy(request, place)
        guard place.isTLS else { return }
        let tls = request.terms.tls
        // Before the settings are taken over: they say whether the watch was told of this handle.
        if tls.tellsChallenges || applied.tls?.tellsChallenges ?? false {
            multi.certificates.setInterest(interest(tls, place), of: raw)
        }
        if applied.tls != tls { applyTLS(tls) }
    }

    private func interest(_ tls: TLSOptions, _ place: Origin) -> HandshakeInterest? {
        guard tls.tellsChallenges else { return nil }
        let address = place.ownAddress?.host
        return HandshakeInterest(
            endsWhereWanted: tls.clientCertificate == nil && !tls.declinesCertificate,
            host: tls.verify ? address ?? place.connectName : nil,
            isAddress: address != nil
        )
    }

    private func applyMethod(_ request: UpstreamRequest) {
        let shape: AppliedOptions.Shape = request.hasBody ? .upload : request.method == .head ? .head : .get
        if applied.shape != shape {
            // The order matters: each of these options changes the effect of the others.
            set(CURLOPT_HTTPGET, 1)
            if shape == .head { set(CURLOPT_NOBODY, 1) }
            if shape == .upload { set(CURLOPT_UPLOAD, 1) }
            applied.shape = shape
        }
        let custom: String? =
            switch (shape, request.method) {
            case (.get, .get), (.head, .head), (.upload, .put): nil
            default: request.method.name
            }
        if applied.customMethod != custom {
            c_curl_set_string(raw, CURLOPT_CUSTOMREQUEST, custom)
            applied.customMethod = custom
        }
        if shape == .upload {
            let length: Int = if case .length(let length) = request.bodyFraming { Int(clamping: length) } else { -1 }
            c_curl_set_offset(raw, CURLOPT_INFILESIZE_LARGE, length)
        }
    }

    private func applyFields(_ request: UpstreamRequest) {
        fields.removeAll()
        let present = request.fields.present
        var isTogether = !request.hasBody
        request.fields.forEachLine { name, value, known in
            if value.isEmpty || known == .expect { isTogether = false }
            if known == .host { fields.append(name: name, value: value) }
        }
        if let host = request.terms.host, !present.contains(.host) { fields.append("Host: \(host)") }
        if isTogether {
            fields.appendTogether(request.fields)
        } else {
            request.fields.forEachLine { name, value, known in
                // With Expect, libcurl would wait for the 100 itself, and repeat the request after
                // a 417, dropping its body.
                if known != .host, known != .expect { fields.append(name: name, value: value) }
            }
        }
        if request.bodyFraming == .chunked, !present.contains(.transferEncoding) {
            fields.append("Transfer-Encoding: chunked")
        }
        // Else libcurl adds its own.
        if isTogether || !present.contains(.accept) { fields.append("Accept:") }
        if request.hasBody { fields.append("Expect:") }
        c_curl_set_list(raw, CURLOPT_HTTPHEADER, fields.link())
    }

    /// libcurl asks the proxy for a tunnel, as for every https origin.
    private func applyProxy(_ request: UpstreamRequest, _ place: Origin) {
        let url = target?.proxyURL ?? ""
        if applied.proxyURL != url {
            c_curl_set_string(raw, CURLOPT_PROXY, url)
            applied.proxyURL = url
        }
        guard let proxy = place.proxy else { return }
        let tunnel = TunnelRequest(proxy, to: place.url.host, place.url.port, via: request.fields.all(.via))
        proxyFields.removeAll()
        // Else libcurl adds it, which no specification knows.
        proxyFields.append("Proxy-Connection:")
        for field in tunnel.fields { proxyFields.append("\(field.name): \(field.value)") }
        c_curl_set_list(raw, CURLOPT_PROXYHEADER, proxyFields.link())
    }

    private func applyTLS(_ tls: TLSOptions) {
        set(CURLOPT_SSL_VERIFYPEER, tls.verify ? 1 : 0)
        set(CURLOPT_SSL_VERIFYHOST, tls.verify ? 2 : 0)
        if let ca = tls.ca {
            c_curl_set_string(raw, CURLOPT_CAINFO, ca)
            // The folder of the system's authorities would count as well.
            c_curl_set_string(raw, CURLOPT_CAPATH, nil)
        } else {
            c_curl_set_string(raw, CURLOPT_CAINFO, c_curl_default_ca_file())
            c_curl_set_string(raw, CURLOPT_CAPATH, c_curl_default_ca_path())
        }
        c_curl_set_string(raw, CURLOPT_SSLCERT, tls.clientCertificate)
        c_curl_set_string(
            raw,
            CURLOPT_SSLKEY,
            tls.clientCertificate == nil ? nil : tls.clientKey ?? tls.clientCertificate
        )
        c_curl_set_string(raw, CURLOPT_PINNEDPUBLICKEY, tls.pins.isEmpty ? nil : tls.pins.joined(separator: ";"))
        applied.tls = tls
    }

    /// Tells libcurl the addresses of the host, so that it never resolves by itself.
    /// - Parameter name: host and port.
    func pin(_ name: String, to addresses: [SocketAddress]) {
        let list = addresses.map { $0.host.utf8.contains(UInt8(ascii: ":")) ? "[\($0.host)]" : $0.host }.joined(
            separator: ","
        )
        pins.removeAll()
        // With a plus sign the entry ages, so that names of forward mode do not pile up.
        pins.append("+\(name):\(list)")
        c_curl_set_list(raw, CURLOPT_RESOLVE, pins.link())
    }

    /// libcurl knows the addresses already.
    func unpin() { c_curl_set_list(raw, CURLOPT_RESOLVE, nil) }
}
