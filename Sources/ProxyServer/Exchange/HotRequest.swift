// A request head in the read buffer as the hot path sees it, and what the hot path hands back for it.

package import HTTPWire
import ServiceCore

/// A request head in the read buffer, for the length of ``ExchangeHandler/answerSynchronously(_:through:)``.
package struct HotRequest: ~Copyable {
    /// The method is GET.
    package let isGet: Bool
    package let version: HTTPVersion
    // Target and host lie in the carrier's own memory, which stays as it is during the call.
    /// The target exactly as received.
    package let target: UnsafeRawBufferPointer
    /// The value of Host without surrounding whitespace.
    package let host: UnsafeRawBufferPointer?
    /// The known fields that occur.
    package let present: FieldSet
    package let keepAlive: Bool
    /// The request has no body, expects and upgrades nothing, its target is as it is matched, and in a tunnel it is known
    /// whom the client asks.
    let isBare: Bool
    // The client's own, which changes it only on the waiting path.
    /// Whom the client asks inside of its tunnel; nil outside of tunnels.
    let tunnel: Unmanaged<KnownAuthority>?
    private let head: Head

    /// Where the rest of the head is, which few requests are asked for: copied values would have their references counted
    /// for each of them.
    private enum Head {
        // The connection's own, which holds both and changes neither during the call.
        case parsed(UnsafeMutablePointer<RequestParser>, UnsafeRawBufferPointer)
        // Held by the carrier during the call.
        case decoded(Unmanaged<DecodedHead>)
    }

    /// A head of HTTP/1.1. The parser and the bytes that it has read a whole head in stay as they are while this is used.
    init(
        _ parser: UnsafeMutablePointer<RequestParser>,
        buffer: UnsafeRawBufferPointer,
        of client: borrowing ConnectedClient
    ) {
        head = .parsed(parser, buffer)
        isGet = if case .get = parser.pointee.method { true } else { false }
        version = parser.pointee.version
        target = buffer.part(parser.pointee.targetRange)
        (host, present) = parser.pointee.hostAndFields(in: buffer)
        keepAlive = parser.pointee.keepAlive
        tunnel = client.borrowedAuthority
        isBare =
            switch parser.pointee.framing {
            case .none, .length(0): parser.pointee.isOrdinary && !(client.isInTunnel && tunnel == nil)
            case .length, .chunked, .untilClose: false
            }
    }

    /// A head of another form. It is held, and stays as it is, while this is used.
    /// - Parameter isBare: as the member.
    init(_ decoded: DecodedHead, of client: borrowing ConnectedClient, isBare: Bool) {
        head = .decoded(.passUnretained(decoded))
        isGet = decoded.method == .get
        version = .http11
        target = decoded.target
        host = decoded.host
        present = decoded.present
        keepAlive = true
        tunnel = client.borrowedAuthority
        self.isBare = isBare && !(client.isInTunnel && tunnel == nil)
    }

    package var method: Method {
        switch head {
        case .parsed(let parser, _): parser.pointee.method
        case .decoded(let head): head._withUnsafeGuaranteedRef { $0.method }
        }
    }

    /// The field lines where they lie; valid during the call.
    var fields: BorrowedLines {
        switch head {
        case .parsed(let parser, let buffer): parser.pointee.lines(in: buffer)
        case .decoded(let head): head._withUnsafeGuaranteedRef { $0.lines }
        }
    }

    /// The value of the first line of this name, without surrounding whitespace; valid during the call.
    func value(_ field: KnownField) -> UnsafeRawBufferPointer? {
        if case .parsed(let parser, let buffer) = head { return parser.pointee.value(field, in: buffer) }
        guard present.contains(field) else { return nil }
        var first: UnsafeRawBufferPointer?
        fields.forEachValue(field) { if first == nil { first = $0 } }
        return first
    }
}

/// The head of a request that came as values, such as those of HPACK, and not as text. Loop-bound: a carrier has one, and
/// fills it anew for each request, so that the hot path allocates nothing.
package final class DecodedHead {
    package private(set) var method = Method.get
    /// The known fields that occur.
    package private(set) var present = FieldSet()
    // Ours alone, freed in deinit. Target, names and values, in the order in which they came.
    private let room: UnsafeMutableRawBufferPointer
    private var used = 0
    private var targetLength = 0
    private var entries: [FieldEntry] = []

    /// - Parameter limit: bytes of target, names and values together.
    package init(limit: Int) { room = .allocate(byteCount: limit, alignment: 16) }

    deinit { room.deallocate() }

    /// Begins a head. False if it is too long; then nothing of it may be used.
    package func begin(_ method: Method, target: UnsafeRawBufferPointer) -> Bool {
        self.method = method
        present = FieldSet()
        used = 0
        entries.removeAll(keepingCapacity: true)
        targetLength = target.count
        return keep(target)
    }

    /// Adds a field line; what HTTP/2 calls the authority is one of Host. False if the head is too long with it.
    package func append(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool {
        let start = used
        guard keep(name), keep(value) else { return false }
        let known = KnownField.find(name)
        present.insert(known)
        entries.append(
            FieldEntry(
                nameOffset: UInt32(start),
                nameLength: UInt32(name.count),
                valueOffset: UInt32(start + name.count),
                valueLength: UInt32(value.count),
                known: known
            )
        )
        return true
    }

    private func keep(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count <= room.count - used else { return false }
        UnsafeMutableRawBufferPointer(rebasing: room[used...]).copyMemory(from: bytes)
        used += bytes.count
        return true
    }

    // Valid until the next head begins, as all that lies in the room.
    private var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(room) }

    package var target: UnsafeRawBufferPointer { bytes.part(0..<targetLength) }

    package var host: UnsafeRawBufferPointer? { entries.first { $0.known == .host }?.value(in: bytes) }

    /// The field lines where they lie.
    var lines: BorrowedLines { BorrowedLines(entries, in: bytes) }

    /// The head as a value of its own, for the waiting path.
    package var head: RequestHead {
        RequestHead(
            method: method,
            target: String(decoding: target, as: UTF8.self),
            version: .http11,
            fields: Fields(lines)
        )
    }
}

@available(*, unavailable) extension DecodedHead: Sendable {}

// MARK: - The answer of the hot path

/// What became of a request that was to be answered at once. The connection goes on by this value alone.
package enum HotAnswer: Equatable {
    /// Nothing was sent: the request takes another way.
    case notMine
    /// The whole answer is with the socket, or with the other answers of this callback.
    case sent
    /// A part of the answer is queued; the rest follows when the client takes it.
    case queued
    /// A part of the answer is out, and no more can follow: only the end of the connection shows
    /// the client that it is cut.
    case broken
    /// The connection could not take an answer: it ends without one.
    case refused
}

/// Takes the answers of the hot path: the client's side, as a handler sees it there. Loop-bound.
package protocol HotSender: AnyObject {
    /// The value of Date for now.
    var dateText: String { get }

    /// Answers the request that ``ExchangeHandler/answerSynchronously(_:through:)`` was asked about, at most once: one
    /// call, no allocation; a large body follows by one `sendfile`. The handler returns the result.
    ///
    /// - Parameters:
    ///   - prepared: the status line and field lines, each with its CRLF, without the empty line; copied if it is
    ///     needed later, like `dynamic`.
    ///   - dynamic: further field lines, such as Age and Cache-Status. One of the two holds Content-Length. Connection
    ///     and the empty line are added here.
    ///   - body: sent from where it is; no bytes for HEAD and for answers without a body.
    ///   - owner: owns the bytes of a body in memory. The caller holds it during the call; the queue holds it until
    ///     the last byte is written.
    ///   - record: for the access log and the counters.
    func sendAtOnce(
        prepared: UnsafeRawBufferPointer,
        dynamic: UnsafeRawBufferPointer,
        body: HotBody,
        owner: Unmanaged<AnyObject>,
        record: HotRecord
    ) -> HotAnswer
}
