// A transfer over libcurl: a pooled easy handle, the request as its options, the connections that it may use, and the
// response.

import CLibcurl
import EventLoop
import Glibc
import HTTPWire

/// One libcurl easy handle and the objects that belong to it; loop-bound, used by one transfer after another.
///
/// A request is tried again with this handle if libcurl was stopped before it sent anything (``Retry``).
final class EasyHandle: TransferCarrier {
    let raw: UnsafeMutableRawPointer
    // Unowned: the pool holds its idle handles, and those in use end before it is closed.
    private unowned let pool: CurlPool
    let multi: CurlMulti
    let slot: CarrierSlot
    /// True while the handle is added to libcurl's multi handle.
    private(set) var isAdded = false
    /// The origin of the transfer; nil before the first transfer.
    private(set) var target: CurlTarget?
    /// The only addresses that the transfer may go to.
    var addresses: [SocketAddress] = []
    /// The connection that libcurl uses; nil before it has one.
    var connection: ConnectionName?
    /// The reason why libcurl was stopped; nil if it was not.
    var refusal: UpstreamError?
    /// The reason why another try may succeed, if libcurl was stopped before it sent anything.
    var retry: Retry?
    /// How many times the transfer was tried again because libcurl was stopped.
    var retries = 0
    // The values to which the options were last set.
    var applied = AppliedOptions()
    let fields = HeaderList()
    let pins = HeaderList()
    /// The fields of a CONNECT request to a proxy.
    let proxyFields = HeaderList()
    // libcurl writes messages into this buffer, which is freed after the handle.
    private let errorBuffer: UnsafeMutablePointer<CChar>
    private var isForbidden = false
    private var isVerbose = false
    /// The session whose close_notify is watched; the address is compared and never read.
    private var tlsSession: UnsafeRawPointer?
    /// Whether the origin has ended the connection by close_notify.
    private(set) var wasEndSaid = false
    /// True if the response does not need the rest of the request's body.
    var isRefused = false

    init?(_ pool: CurlPool, bufferSize: Int) {
        guard let raw = curl_easy_init() else { return nil }
        self.raw = raw
        self.pool = pool
        let multi = pool.multi
        self.multi = multi
        slot = CarrierSlot(on: multi.loop)
        errorBuffer = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorBuffer.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        CurlCallbacks.install(on: raw, context: Unmanaged.passUnretained(self).toOpaque(), multi: multi)
        c_curl_set_pointer(raw, CURLOPT_ERRORBUFFER, errorBuffer)
        multi.certificates.install(on: raw)
        setConstants(bufferSize: bufferSize)
    }

    /// Unretained: the pool or its transfer holds every handle until libcurl has let go of it.
    static func of(_ context: UnsafeMutableRawPointer?) -> EasyHandle? {
        guard let context else { return nil }
        return Unmanaged<EasyHandle>.fromOpaque(context).takeUnretainedValue()
    }

    deinit {
        curl_easy_cleanup(raw)
        errorBuffer.deallocate()
    }

    /// The reason why another try may succeed.
    enum Retry {
        /// The connection from the cache cannot be used.
        case staleConnection
        /// libcurl did not know the addresses any more.
        case unresolved
    }

    /// Begins to carry a transfer.
    func take(_ transfer: Transfer, to target: CurlTarget) {
        transfer.attach(to: self)
        self.target = target
        reader.reset(for: transfer.request)
        addresses = []
        connection = nil
        refusal = nil
        retry = nil
        retries = 0
    }

    var remoteAddress: String? { connection.map { "\($0.remote):\($0.remotePort)" } }

    /// Adds the handle to libcurl, which begins the transfer. False if libcurl does not accept it.
    func begin() -> Bool {
        isAdded = multi.enter { curl_multi_add_handle($0, raw) } == CURLM_OK
        return isAdded
    }

    func release() {
        takeBack()
        pool.giveBack(self)
    }

    /// Takes the handle back from libcurl; called outside libcurl.
    func takeBack() {
        guard isAdded else { return }
        isAdded = false
        _ = multi.enter { curl_multi_remove_handle($0, raw) }
        if let tlsSession { wasEndSaid = multi.takeEnd(tlsSession) }
        tlsSession = nil
    }

    func resume(receive: Bool, send: Bool) {
        guard isAdded, let transfer else { return }
        let still = (transfer.isReceivePaused ? CURLPAUSE_RECV : 0) | (transfer.isSendPaused ? CURLPAUSE_SEND : 0)
        // This call delivers the bytes that libcurl holds at once.
        let result = multi.enter { _ in curl_easy_pause(raw, still) }
        if let result, result != CURLE_OK { finish(result) }
    }

    /// libcurl's message about the last failure.
    var errorText: String { String(cString: errorBuffer) }

    func set(_ option: CURLoption, _ value: Int) { c_curl_set_long(raw, option, value) }

    private func setConstants(bufferSize: Int) {
        set(CURLOPT_NOSIGNAL, 1)
        set(CURLOPT_QUICK_EXIT, 1)
        set(CURLOPT_NOPROGRESS, 1)
        set(CURLOPT_BUFFERSIZE, bufferSize)
        set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        // The bytes of the body arrive unchanged: Drydock decodes and checks them.
        set(CURLOPT_HTTP_TRANSFER_DECODING, 0)
        set(CURLOPT_HTTP_CONTENT_DECODING, 0)
        set(CURLOPT_FOLLOWLOCATION, 0)
        set(CURLOPT_PATH_AS_IS, 1)
        // Drydock has its own deadline for connecting; libcurl's default of 300 s would end longer ones.
        set(CURLOPT_CONNECTTIMEOUT_MS, Int(Int32.max))
        set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        c_curl_set_string(raw, CURLOPT_PROTOCOLS_STR, "http,https")
        // With nil instead of the empty string libcurl would obey http_proxy of the environment.
        c_curl_set_string(raw, CURLOPT_PROXY, "")
        // Without this option libcurl would look no_proxy up in the environment before each request.
        c_curl_set_string(raw, CURLOPT_NOPROXY, "")
        // The head of a proxy's answer to CONNECT is not part of a response.
        set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    }

    /// Has libcurl close the connection after this transfer.
    func forbidReuse() {
        guard !isForbidden else { return }
        isForbidden = true
        set(CURLOPT_FORBID_REUSE, 1)
    }

    /// Reads libcurl's log from here on: libcurl drops bytes after a response without a body, and reports that only
    /// there.
    func listenForExcess() {
        isVerbose = true
        set(CURLOPT_VERBOSE, 1)
    }

    /// Watches how the TLS connection ends from here on: libcurl treats every end as one that the origin intended.
    func listenForEnd() { tlsSession = multi.hearEnd(of: raw) }

    /// Resets the options to the state between two transfers.
    func rewind() {
        if isForbidden { set(CURLOPT_FORBID_REUSE, 0) }
        if isVerbose { set(CURLOPT_VERBOSE, 0) }
        isForbidden = false
        isVerbose = false
        isRefused = false
        wasEndSaid = false
        errorBuffer.pointee = 0
    }
}

@available(*, unavailable) extension EasyHandle: Sendable {}

// MARK: - The request

/// The values to which the options of a handle were last set.
struct AppliedOptions {
    enum Shape { case get, head, upload }

    /// The origin's URL and addresses, held as long as the handle may use the URL.
    var destination: CurlTarget?
    /// The request target that was set.
    var target = ""
    var shape: Shape?
    var customMethod: String?
    var tls: TLSOptions?
    var isFresh = false
    var proxyURL = ""
}

extension EasyHandle {
    /// Sets the options for a request.
    /// - Parameters:
    ///   - line: the target in the request line.
    ///   - isFresh: whether to use a new connection, not one from the cache.
    func apply(_ request: UpstreamRequest, _ line: String, _ origin: Origin, isFresh: Bool) {
        rewind()
        if let target, applied.destination !== target {
            c_curl_set_pointer(raw, CURLOPT_CURLU, UnsafeMutableRawPointer(target.url))
            applied.destination = target
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
        applyProxy(request, origin)
        guard origin.isTLS else { return }
        let tls = request.terms.tls
        // The former settings tell whether the watch knows this handle, so this comes before they are replaced.
        if tls.tellsChallenges || applied.tls?.tellsChallenges ?? false {
            multi.certificates.setInterest(interest(tls, origin), of: raw)
        }
        if applied.tls != tls { applyTLS(tls) }
    }

    private func interest(_ tls: TLSOptions, _ origin: Origin) -> HandshakeInterest? {
        guard tls.tellsChallenges else { return nil }
        let address = origin.ownAddress?.host
        return HandshakeInterest(
            endsWhereWanted: tls.clientCertificate == nil && !tls.declinesCertificate,
            host: tls.verify ? address ?? origin.connectName : nil,
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
                // With Expect, libcurl would wait for the 100 itself, and repeat the request after a 417 without its
                // body.
                if known != .host, known != .expect { fields.append(name: name, value: value) }
            }
        }
        if request.bodyFraming == .chunked, !present.contains(.transferEncoding) {
            fields.append("Transfer-Encoding: chunked")
        }
        // An empty entry keeps libcurl from adding its own field.
        if isTogether || !present.contains(.accept) { fields.append("Accept:") }
        if request.hasBody { fields.append("Expect:") }
        c_curl_set_list(raw, CURLOPT_HTTPHEADER, fields.link())
    }

    /// Sets the proxy: libcurl asks it for a tunnel, as for every https origin.
    private func applyProxy(_ request: UpstreamRequest, _ origin: Origin) {
        let url = target?.proxyURL ?? ""
        if applied.proxyURL != url {
            c_curl_set_string(raw, CURLOPT_PROXY, url)
            applied.proxyURL = url
        }
        guard let proxy = origin.proxy else { return }
        let tunnel = TunnelRequest(proxy, to: origin.url.host, origin.url.port, via: request.fields.all(.via))
        proxyFields.removeAll()
        // An empty entry keeps libcurl from adding this field, which no specification defines.
        proxyFields.append("Proxy-Connection:")
        for field in tunnel.fields { proxyFields.append("\(field.name): \(field.value)") }
        c_curl_set_list(raw, CURLOPT_PROXYHEADER, proxyFields.link())
    }

    private func applyTLS(_ tls: TLSOptions) {
        set(CURLOPT_SSL_VERIFYPEER, tls.verify ? 1 : 0)
        set(CURLOPT_SSL_VERIFYHOST, tls.verify ? 2 : 0)
        if let ca = tls.ca {
            c_curl_set_string(raw, CURLOPT_CAINFO, ca)
            // Otherwise the authorities in the system's folder would count as well.
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
        // The plus sign lets the entry expire, so that names of forward mode do not accumulate.
        pins.append("+\(name):\(list)")
        c_curl_set_list(raw, CURLOPT_RESOLVE, pins.link())
    }

    /// Sets no addresses, since libcurl knows them already.
    func unpin() { c_curl_set_list(raw, CURLOPT_RESOLVE, nil) }
}

// MARK: - The connection

// Decides which connection libcurl may open, reuse and send a request on. libcurl is on the stack during these calls,
// so they call no function of its multi handle.
extension EasyHandle {
    /// Decides before a socket is opened whether libcurl may connect to an address.
    func mayConnect(to address: UnsafePointer<curl_sockaddr>) -> Bool {
        guard let transfer else { return false }
        // libcurl opens a connection before it repeats a request, and only then finds that it must not: the request may
        // have had its effect by then.
        guard transfer.mayGoOut else {
            refusal = transfer.resendError
            return false
        }
        let length = min(Int(address.pointee.addrlen), MemoryLayout<sockaddr_storage>.size)
        guard let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr) else { return false }
        // The member `addr` is only the start: libcurl reserves room for the longest address behind it.
        let start = UnsafeRawPointer(address).advanced(by: offset).assumingMemoryBound(to: sockaddr.self)
        let target = SocketAddress(start, length: socklen_t(length))
        guard transfer.dialRules.allows(target) else {
            refusal = .refused(transfer.destinationName, at: target.host)
            return false
        }
        return true
    }

    /// Refuses to let libcurl resolve a name by itself, since it was given the addresses.
    func mayResolve() -> Bool {
        guard let transfer else { return false }
        // A numeric host needs no resolution.
        if transfer.destination?.isPinned == false { return true }
        return startAnew(.unresolved, lostError(transfer))
    }

    private func lostError(_ transfer: Transfer) -> UpstreamError {
        UpstreamError(.resolver, detail: "the addresses of \(transfer.destinationName) were lost: try again")
    }

    /// Whether the request may be sent on the open connection; also called before libcurl repeats a request.
    func mayRequest(on name: ConnectionName) -> Bool {
        guard let transfer, transfer.client != nil, !transfer.isGivenUp, refusal == nil else { return false }
        connection = name
        guard transfer.mayGoOut else {
            refusal = transfer.resendError
            return false
        }
        // This option counts the connections made for the transfer.
        let isReused = c_curl_get_long(raw, CURLINFO_NUM_CONNECTS) == 0
        let address = SocketAddress(numericHost: name.remote, port: 0)
        guard address.map(transfer.dialRules.allows) ?? false else {
            if isReused { return startAnew(.staleConnection, transfer.unaskedError) }
            refusal = .refused(transfer.destinationName, at: name.remote)
            return false
        }
        // libcurl looks for idle connections by the name only, which may have other addresses by now.
        if transfer.destination?.isPinned != false, !addresses.contains(where: { $0.ipBytes == address?.ipBytes }) {
            return startAnew(isReused ? .staleConnection : .unresolved, lostError(transfer))
        }
        if isReused, multi.isSpent(name) || transfer.destination?.isTLS == true && c_curl_get_tls_pending(raw) > 0 {
            return startAnew(.staleConnection, transfer.unaskedError)
        }
        multi.noLongerIdle(name)
        transfer.goesOut()
        return true
    }

    /// Begins the transfer again after libcurl was stopped before it sent anything; the error is reported if that does
    /// not help either.
    private func startAnew(_ reason: Retry, _ error: UpstreamError) -> Bool {
        retry = reason
        refusal = error
        return false
    }
}

// MARK: - The response

/// The treatment of body bytes.
enum BodyVerdict { case taken, pause, refused }

extension EasyHandle {
    func received(line: UnsafeRawBufferPointer) -> Bool {
        guard let transfer else { return false }
        transfer.mark()
        guard reader.take(line: line) else { return false }
        if reader.isHeadComplete {
            transfer.headReceived()
            isRefused = reader.head.map { $0.status >= 300 } ?? false
            if reader.mustClose { forbidReuse() }
            switch reader.framing {
            case .none, .length(0): listenForExcess()
            case .untilClose where transfer.destination?.isTLS == true: listenForEnd()
            default: break
            }
            endIfRefused(transfer)
        }
        return true
    }

    func received(body: UnsafeRawBufferPointer) -> BodyVerdict {
        guard let transfer else { return .refused }
        if transfer.mustPause(buffered: reader.bytes.count) { return .pause }
        // This is read first: the reader must not be accessed while it takes bytes.
        let isDirect = transfer.handsOnAtOnce
        transfer.mark()
        guard reader.take(body: body, handOn: { isDirect && transfer.handOn($0) }) else { return .refused }
        transfer.bodyReceived()
        if reader.mustClose { forbidReuse() }
        endIfRefused(transfer)
        return .taken
    }

    /// True if the whole response has arrived and is a refusal, so that the rest of the request's body is not needed.
    var wantsNoMore: Bool { isRefused && reader.isComplete }

    /// Ends the request's body after a refusal: libcurl would wait for a paused source whatever the answer is, so the
    /// source is asked once more, and reports its end.
    private func endIfRefused(_ transfer: Transfer) {
        guard wantsNoMore, transfer.isSendPaused else { return }
        transfer.isBodyAnnounced = true
    }

    func logged(_ text: UnsafeRawBufferPointer) {
        let notice: StaticString = "Excess found"
        guard text.count >= notice.utf8CodeUnitCount else { return }
        for position in 0..<notice.utf8CodeUnitCount where text[position] != notice.utf8Start[position] { return }
        forbidReuse()
    }

    // MARK: - The end

    /// Ends the transfer with libcurl's result; called outside libcurl.
    func finish(_ result: CURLcode) {
        guard let transfer, transfer.state != .ended, !transfer.isConcluded else { return }
        if result == CURLE_OK { keepConnection() }
        let osError = Int32(truncatingIfNeeded: c_curl_get_long(raw, CURLINFO_OS_ERRNO))
        takeBack()
        if !transfer.isGivenUp, restart(transfer) { return }
        transfer.conclude(verdict(transfer, result, osError: osError))
    }

    /// Tells the multi handle which socket is idle now.
    private func keepConnection() {
        let descriptor = c_curl_get_active_socket(raw)
        guard descriptor != CURL_SOCKET_BAD, let connection else { return }
        multi.becameIdle(descriptor, name: connection, longestIdle: reader.longestIdle)
    }

    /// Tries again if libcurl was stopped before it sent anything.
    private func restart(_ transfer: Transfer) -> Bool {
        guard let retry, retries < 3, let client = transfer.client else { return false }
        retries += 1
        self.retry = nil
        refusal = nil
        client.resolve(transfer, isFresh: retry == .staleConnection)
        return true
    }

    private func verdict(
        _ transfer: Transfer,
        _ result: CURLcode,
        osError: Int32
    ) -> Result<Fields, UpstreamError> {
        reader.endOfLines()
        if let failure = reader.failure { return .failure(transfer.violation(failure)) }
        let name = transfer.destinationName
        if result == CURLE_OK {
            if reader.end() {
                let endsItself = if case .untilClose = reader.framing { false } else { true }
                transfer.provesEnd = endsItself || transfer.destination?.isTLS != true || wasEndSaid
                return .success(reader.trailers)
            }
            let kind: UpstreamError.Kind = reader.isHeadComplete ? .truncated : .closed
            return .failure(
                UpstreamError(kind, detail: "\(name) ended the connection before its response was complete")
            )
        }
        // The whole response has arrived, and only libcurl's work after it failed.
        if reader.isComplete { return .success(reader.trailers) }
        if let refusal { return .failure(refusal) }
        if transfer.hasBodyFailed { return .failure(transfer.requestBodyError) }
        if let error = proxyError(transfer, result) { return .failure(error) }
        let certificates = multi.certificates.take(raw)
        let context = CurlFailure.Context(
            name: name,
            address: remoteAddress,
            isHeadComplete: reader.isHeadComplete,
            hasReceived: reader.hasReceived,
            osError: osError,
            text: errorText,
            certificate: certificates.bad,
            shown: certificates.shown,
            tls: transfer.request.terms.tls,
            isProxied: transfer.destination?.proxy != nil
        )
        return .failure(CurlFailure.error(result, context))
    }

    /// The reason why the proxy opened no tunnel; nil if it did, or was not asked for one.
    private func proxyError(_ transfer: Transfer, _ result: CURLcode) -> UpstreamError? {
        guard let destination = transfer.destination, let proxy = destination.proxy, transfer.timesSent == 0 else {
            return nil
        }
        let status = c_curl_get_long(raw, CURLINFO_HTTP_CONNECTCODE)
        if status != 0 {
            return 200..<300 ~= status ? nil : proxy.refusal(of: destination.url.authority, status: status)
        }
        switch result {
        case CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING, CURLE_WEIRD_SERVER_REPLY,
            CURLE_UNSUPPORTED_PROTOCOL, CURLE_PROXY:
            return proxy.silence(about: destination.url.authority, errorText)
        default: return nil
        }
    }
}
