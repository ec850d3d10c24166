// Asks a proxy for a tunnel to an origin (RFC 9110 section 9.3.6).

import EventLoop
import Glibc
import HTTPWire

/// What a proxy is asked for.
struct TunnelRequest {
    let proxy: UpstreamProxy
    /// Host and port that the tunnel leads to.
    let place: String
    /// The entries of Via of the request that is to go through it: by them a loop is found.
    let via: [String]

    init(_ proxy: UpstreamProxy, to host: String, _ port: UInt16, via: [String]) {
        self.proxy = proxy
        place = "\(host):\(port)"
        self.via = via
    }

    /// The lines of its head between the one of the request and the empty one, as names and values.
    var fields: [(name: String, value: String)] {
        let credentials = proxy.authorization.map { [("Proxy-Authorization", $0)] } ?? []
        return credentials + via.map { ("Via", $0) }
    }

    var head: [UInt8] {
        var text = "CONNECT \(place) HTTP/1.1\r\nHost: \(place)\r\n"
        for field in fields { text += "\(field.name): \(field.value)\r\n" }
        return Array((text + "\r\n").utf8)
    }
}

/// One such request on a connection that stands; loop-bound, held by the dial.
///
/// It takes no byte from the socket that follows the head of the answer: those are the origin's.
final class TunnelOpening: IOHandler {
    private let request: TunnelRequest
    // Open until it is taken.
    private var descriptor: Int32
    private let event: (() -> Void) -> Void
    private let completion: (UpstreamError?) -> Void
    private var watch: IOEvent?
    private var unsent: ArraySlice<UInt8>
    private var parser = ResponseParser(limits: .response, isLenient: true)
    /// The start of a head that has not come to its end.
    private var part: [UInt8] = []
    private var interimCount = 0

    /// - Parameters:
    ///   - event: whatever happens goes through here.
    ///   - completion: told how it ended, once, nil for a tunnel; it takes the descriptor.
    init(
        _ request: TunnelRequest,
        _ descriptor: Int32,
        on loop: EventLoop,
        event: @escaping (() -> Void) -> Void,
        completion: @escaping (UpstreamError?) -> Void
    ) {
        self.request = request
        self.descriptor = descriptor
        self.event = event
        self.completion = completion
        unsent = request.head[...]
        watch = IOEvent(onThreadOf: loop, descriptor: descriptor, handler: self)
    }

    func begin() { send() }

    /// Nothing is heard of it any more; the descriptor is the caller's.
    func takeDescriptor() -> Int32 {
        watch?.cancel()
        watch = nil
        defer { descriptor = -1 }
        return descriptor
    }

    func ready(_ readiness: IOReadiness) {
        event { if readiness == .write { send() } else { receive() } }
    }

    private func send() {
        while !unsent.isEmpty {
            switch unsent.withUnsafeBytes({ WireSocket.send(descriptor, $0) }) {
            case .bytes(let count): unsent = unsent.dropFirst(count)
            case .wouldBlock, .end: return watch?.watch([.read, .write]) ?? ()
            case .failed(let code): return fail(String(cString: strerror(code)))
            }
        }
        watch?.watch(.read)
    }

    private enum Step {
        case more
        case answered(Int)
        /// What came is no answer.
        case silence(String)
    }

    private func receive() {
        let step = withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { room -> Step in
            switch WireSocket.peek(descriptor, into: room) {
            case .bytes(let count): take(UnsafeMutableRawBufferPointer(rebasing: room[..<count]))
            case .wouldBlock: .more
            case .end: .silence("it ended the connection")
            case .failed(let code): .silence(String(cString: strerror(code)))
            }
        }
        switch step {
        case .more: break
        case .answered(200..<300): completion(nil)
        case .answered(let status): completion(request.proxy.refusal(of: request.place, status: status))
        case .silence(let text): fail(text)
        }
    }

    /// - Parameter seen: what waits in the socket, or its beginning.
    private func take(_ seen: UnsafeMutableRawBufferPointer) -> Step {
        let earlier = part.count
        part.append(contentsOf: seen)
        let progress = part.withUnsafeBytes { bytes -> Result<ParseProgress, WireError> in
            do throws(WireError) { return .success(try parser.parse(bytes, requestMethod: .connect)) } catch {
                return .failure(error)
            }
        }
        switch progress {
        case .success(.complete(let length)):
            // And not a byte more: the rest belongs to whoever speaks through the tunnel.
            _ = Socket.read(descriptor, into: UnsafeMutableRawBufferPointer(rebasing: seen[..<(length - earlier)]))
            let status = parser.status
            guard status < 200 else { return .answered(status) }
            interimCount += 1
            guard interimCount <= InterimBound.maximumHeads else { return .silence("it does not come to an answer") }
            parser.reset()
            part = []
            return .more
        case .success(.needMore):
            _ = Socket.read(descriptor, into: seen)
            return .more
        case .failure(let error): return .silence("it sent an answer that is refused: \(error.detail)")
        }
    }

    private func fail(_ text: String) { completion(request.proxy.silence(about: request.place, text)) }
}

@available(*, unavailable) extension TunnelOpening: Sendable {}
