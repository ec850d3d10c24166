// A pooled easy handle: its options are set once, and between requests only what differs.

import CLibcurl
import EventLoop
import HTTPWire

/// One libcurl easy handle with what belongs to it; loop-bound, used by one transfer after another.
///
/// A request is tried anew, with this handle, where libcurl was stopped before it sent anything (``Retry``).
final class EasyHandle: TransferCarrier {
    let raw: UnsafeMutableRawPointer
    // Unowned: the pool holds its idle handles, and those at work end before it is closed.
    private unowned let pool: CurlPool
    let multi: CurlMulti
    let slot: CarrierSlot
    /// The handle is with libcurl.
    private(set) var isAdded = false
    /// Where it leads; nil before its first transfer.
    private(set) var target: CurlPlace?
    /// The only addresses that the transfer may go to.
    var addresses: [SocketAddress] = []
    /// The connection that libcurl uses.
    var connection: ConnectionName?
    /// Why libcurl was told to stop; nil: it was not.
    var refusal: UpstreamError?
    /// Why it may go well another time, where libcurl was stopped before it sent anything.
    var retry: Retry?
    /// How many times the transfer has been tried again for that.
    var retries = 0
    // What the options were set to last.
    var applied = AppliedOptions()
    let fields = HeaderList()
    let pins = HeaderList()
    /// Of CONNECT to a proxy.
    let proxyFields = HeaderList()
    // libcurl writes messages into it; freed after the handle.
    private let errorBuffer: UnsafeMutablePointer<CChar>
    private var isForbidden = false
    private var isVerbose = false
    /// The session whose close_notify is watched: an address that is compared and never read.
    private var tlsSession: UnsafeRawPointer?
    /// The origin has ended the connection by close_notify.
    private(set) var wasEndSaid = false
    /// The response is none that wants the rest of the request's body.
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

    /// What may go well another time.
    enum Retry {
        /// The connection from the cache is no good.
        case staleConnection
        /// libcurl had forgotten the addresses.
        case unresolved
    }

    /// Takes a transfer on.
    func take(_ transfer: Transfer, to target: CurlPlace) {
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

    /// Gives the handle to libcurl, which begins. False: it does not take it.
    func begin() -> Bool {
        isAdded = multi.enter { curl_multi_add_handle($0, raw) } == CURLM_OK
        return isAdded
    }

    func release() {
        takeBack()
        pool.giveBack(self)
    }

    /// Takes the handle back from libcurl; outside libcurl.
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
        // Calls back at once with the bytes that libcurl holds.
        let result = multi.enter { _ in curl_easy_pause(raw, still) }
        if let result, result != CURLE_OK { finish(result) }
    }

    /// libcurl's own words on the last failure.
    var errorText: String { String(cString: errorBuffer) }

    func set(_ option: CURLoption, _ value: Int) { c_curl_set_long(raw, option, value) }

    private func setConstants(bufferSize: Int) {
        set(CURLOPT_NOSIGNAL, 1)
        set(CURLOPT_QUICK_EXIT, 1)
        set(CURLOPT_NOPROGRESS, 1)
        set(CURLOPT_BUFFERSIZE, bufferSize)
        set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        // The bytes of the body as they came: Drydock decodes and judges them.
        set(CURLOPT_HTTP_TRANSFER_DECODING, 0)
        set(CURLOPT_HTTP_CONTENT_DECODING, 0)
        set(CURLOPT_FOLLOWLOCATION, 0)
        set(CURLOPT_PATH_AS_IS, 1)
        // Drydock has its own deadline for connecting; libcurl's default of 300 s would cut longer ones.
        set(CURLOPT_CONNECTTIMEOUT_MS, Int(Int32.max))
        set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        c_curl_set_string(raw, CURLOPT_PROTOCOLS_STR, "http,https")
        // The empty string, not nil: else libcurl obeys http_proxy of the environment.
        c_curl_set_string(raw, CURLOPT_PROXY, "")
        // The same for no_proxy, which libcurl would look up in the environment before each request.
        c_curl_set_string(raw, CURLOPT_NOPROXY, "")
        // What a proxy says to CONNECT is no part of a response.
        set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    }

    /// The connection is closed after this transfer.
    func forbidReuse() {
        guard !isForbidden else { return }
        isForbidden = true
        set(CURLOPT_FORBID_REUSE, 1)
    }

    /// Watches libcurl's log from here on: libcurl drops bytes after a response without a body,
    /// and reports that only there.
    func listenForExcess() {
        isVerbose = true
        set(CURLOPT_VERBOSE, 1)
    }

    /// libcurl takes every end of a TLS connection for one that the origin meant: from here on it
    /// is looked at how it comes.
    func listenForEnd() { tlsSession = multi.hearEnd(of: raw) }

    /// Back to the state between two transfers.
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
