// A pooled easy handle: its options are set once, and between requests only what differs.

internal import CLibcurl
internal import EventLoop
internal import HTTPWire

/// One libcurl easy handle with what belongs to it; loop-bound, used by one transfer after another.
final class EasyHandle {
    let raw: UnsafeMutableRawPointer
    let multi: CurlMulti
    /// Whose it is now.
    var transfer: Transfer?
    var reader = ResponseReader()
    private var timer: LoopTimer?
    /// When the timer will fire; nil: it does not run.
    private var timerAt: UInt64?
    // What the options were set to last.
    var applied = AppliedOptions()
    let fields = HeaderList()
    let pins = HeaderList()
    // libcurl writes messages into it; freed after the handle.
    private let errorBuffer: UnsafeMutablePointer<CChar>
    private var isForbidden = false
    private var isVerbose = false

    init?(multi: CurlMulti, bufferSize: Int) {
        guard let raw = curl_easy_init() else { return nil }
        self.raw = raw
        self.multi = multi
        errorBuffer = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorBuffer.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        CurlCallbacks.install(on: raw, context: Unmanaged.passUnretained(self).toOpaque(), multi: multi)
        c_curl_set_pointer(raw, CURLOPT_ERRORBUFFER, errorBuffer)
        setConstants(bufferSize: bufferSize)
        // Only the loop's own thread comes here, and `self` outlives the call.
        let address = UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque())
        multi.loop.assumeIsolated { loop in
            guard let pointer = UnsafeRawPointer(bitPattern: address) else { return }
            Unmanaged<EasyHandle>.fromOpaque(pointer).takeUnretainedValue().attach(on: loop)
        }
    }

    deinit {
        curl_easy_cleanup(raw)
        errorBuffer.deallocate()
    }

    private func attach(on loop: isolated EventLoop) {
        // Unowned: the timer is this object's own and ends with it.
        timer = LoopTimer(on: loop) { [unowned self] in
            timerAt = nil
            transfer?.timerFired()
        }
    }

    /// Has the transfer's timer fire at `time` or before: it runs on from one transfer to the next, which looks again when
    /// it fires too early.
    func wake(at time: UInt64) {
        if let timerAt, timerAt <= time { return }
        timerAt = time
        let now = Monotonic.now()
        timer?.start(after: time > now ? time - now : 0)
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
        // Drydock's deadline for connections is the one that counts; libcurl's default of 300 s would cut longer ones.
        set(CURLOPT_CONNECTTIMEOUT_MS, Int(Int32.max))
        set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        c_curl_set_string(raw, CURLOPT_PROTOCOLS_STR, "http,https")
        // The empty string, not nil: else libcurl obeys http_proxy of the environment.
        c_curl_set_string(raw, CURLOPT_PROXY, "")
        // The same for no_proxy, which libcurl would look for before each request.
        c_curl_set_string(raw, CURLOPT_NOPROXY, "")
    }

    /// The connection is closed after this transfer.
    func forbidReuse() {
        guard !isForbidden else { return }
        isForbidden = true
        set(CURLOPT_FORBID_REUSE, 1)
    }

    /// libcurl drops bytes after a response without a body and says so only in its log: that log is read from here on.
    func listenForExcess() {
        isVerbose = true
        set(CURLOPT_VERBOSE, 1)
    }

    /// Back to the state between two transfers.
    func rewind() {
        if isForbidden { set(CURLOPT_FORBID_REUSE, 0) }
        if isVerbose { set(CURLOPT_VERBOSE, 0) }
        isForbidden = false
        isVerbose = false
        errorBuffer.pointee = 0
    }
}

@available(*, unavailable) extension EasyHandle: Sendable {}
