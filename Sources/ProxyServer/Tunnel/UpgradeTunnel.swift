// Upgrade to another protocol: the request head goes to the origin, and only after its 101 there is a tunnel.

package import EventLoop
package import HTTPWire

/// Passes one Upgrade request on (RFC 9110 section 7.8), over plain TCP.
package struct UpgradeTunnel {
    /// Connected to the origin; taken over.
    private let remote: Int32
    private let exchange: Exchange
    /// Adapts the head of an answer for the client, such as by adding Via; hop-by-hop fields are handled here.
    private let prepare: (inout ResponseHead) -> Void
    private let firstByte: UInt64
    private let idle: UInt64

    /// - Parameters:
    ///   - remote: a connected, non-blocking descriptor; taken over.
    ///   - firstByte: nanoseconds for the head of the final answer, interim ones before it included.
    ///   - idle: nanoseconds between two reads of an ordinary answer.
    ///   - prepare: adapts the heads of the final answer and of interim ones.
    package init(
        _ exchange: Exchange,
        remote: Int32,
        firstByte: UInt64,
        idle: UInt64,
        prepare: @escaping (inout ResponseHead) -> Void
    ) {
        self.exchange = exchange
        self.remote = remote
        self.firstByte = firstByte
        self.idle = idle
        self.prepare = prepare
    }

    /// The fields of a request to the origin: what is forwardable, and the upgrade that the client asked for.
    package static func requestFields(_ fields: Fields) -> Fields {
        var result = HopByHop.forwardable(fields, isRequest: true)
        if let upgrade = fields.combined(.upgrade) {
            result.set(.upgrade, upgrade)
            result.set(.connection, "upgrade")
        }
        return result
    }

    /// The protocols that a GET wants to switch to and that a tunnel can carry; nil where there is none, so that
    /// Upgrade is ignored (RFC 9110 section 7.8). HTTP/2 and TLS are for the next hop, and curl asks for h2c by itself. With any other
    /// method the request counts, which changes something or has its answer stored: it goes the way that such a request goes.
    package static func wantedProtocols(_ request: RequestHead, _ framing: BodyFraming) -> String? {
        guard request.method == .get, request.version == .http11, framing == .none || framing == .length(0),
            let text = request.fields.combined(.upgrade),
            HopByHop.connectionOptions(request.fields).contains(where: {
                String(decoding: $0, as: UTF8.self).lowercased() == "upgrade"
            })
        else { return nil }
        let wanted = text.split(separator: ",").filter { member in
            let name = member.lowercased().filter { $0 != " " && $0 != "\t" }
            return !name.isEmpty && name != "h2c" && name != "h2" && !name.hasPrefix("http/") && !name.hasPrefix("tls/")
        }
        return wanted.isEmpty ? nil : wanted.joined(separator: ",")
    }

    /// Sends `request`, and relays the answer: a tunnel after a 101, else an ordinary answer. Ends the exchange.
    /// - Parameter request: with its target in origin form and ``requestFields(_:)``.
    package func run(_ request: RequestHead, on loop: isolated EventLoop) async {
        exchange.context.counters.add(.upstreamRequests)
        var bytes: [UInt8] = []
        Serializer.write(request, into: &bytes)
        let began = Monotonic.now()
        do throws(Problem) {
            try await send(bytes, on: loop)
            var reader = OriginReader(descriptor: remote, context: exchange.context)
            let head = try await readHead(&reader, request.method, on: loop)
            exchange.outcome.upstreamStatus = head.status
            exchange.outcome.upstreamTime = Monotonic.now() &- began
            if head.status == 101 { return await becomeTunnel(head, reader.rest, on: loop) }
            exchange.tell(.failedUpgrade, "the origin answered \(head.status) to it, not 101")
            await relay(head, reader.framing, &reader, on: loop)
        } catch {
            exchange.context.counters.add(.errorUpstream)
            exchange.tell(.failedUpgrade, error.detail)
            exchange.problem(error)
        }
        Socket.close(remote)
    }

    private func send(_ bytes: [UInt8], on loop: isolated EventLoop) async throws(Problem) {
        let deadline = DescriptorWaits.deadline(firstByte)
        var sent = 0
        while sent < bytes.count {
            switch bytes.withUnsafeBytes({ Socket.write(remote, $0.part(sent..<$0.count)) }) {
            case .bytes(let count): sent += count
            case .wouldBlock:
                let wait = await exchange.context.wait(for: remote, .write, until: deadline, on: loop)
                guard wait == .ready else { throw Self.late }
            case .end, .failed: throw Self.closed
            }
        }
    }

    private func readHead(
        _ reader: inout OriginReader,
        _ method: Method,
        on loop: isolated EventLoop
    ) async throws(Problem) -> ResponseHead {
        // One for all of it: an origin that goes on with interim answers does not come to the final one.
        let deadline = DescriptorWaits.deadline(firstByte)
        var parser = ResponseParser()
        var bound = InterimBound()
        while true {
            let progress: ParseProgress
            do {
                progress = try reader.rest.withUnsafeBytes { try parser.parse($0, requestMethod: method) }
            } catch let error as WireError {
                throw Problem(error)
            } catch {
                throw Self.closed
            }
            guard case .complete(let length) = progress else {
                guard try await reader.read(until: deadline, on: loop) else { throw Self.closed }
                continue
            }
            let head = reader.rest.withUnsafeBytes { parser.makeHead($0) }
            reader.rest.removeFirst(length)
            reader.framing = parser.framing
            guard head.status < 200, head.status != 101 else { return head }
            do { try bound.take(length: length) } catch { throw Problem(error) }
            pass(interim: head)
            parser.reset()
        }
    }

    private func pass(interim head: ResponseHead) {
        var head = head
        head.fields = HopByHop.forwardable(head.fields, isRequest: false)
        prepare(&head)
        exchange.sendInterim(head)
    }

    private func becomeTunnel(_ head: ResponseHead, _ received: [UInt8], on loop: isolated EventLoop) async {
        var answer = head
        answer.fields = HopByHop.forwardable(head.fields, isRequest: false)
        prepare(&answer)
        answer.fields.set(.connection, "upgrade")
        if let upgrade = head.fields.combined(.upgrade) { answer.fields.set(.upgrade, upgrade) }
        exchange.sendHead(answer, body: .none)
        guard let client = exchange.takeOver() else {
            Socket.close(remote)
            return exchange.fail()
        }
        _ = await Tunnel(on: loop, client: client, remote: remote, received: received).run()
    }

    /// Passes an answer on that refuses the upgrade.
    private func relay(
        _ head: ResponseHead,
        _ framing: BodyFraming,
        _ reader: inout OriginReader,
        on loop: isolated EventLoop
    ) async {
        var answer = head
        answer.fields = HopByHop.forwardable(head.fields, isRequest: false)
        prepare(&answer)
        let length: AnswerLength =
            switch framing {
            case .none: .none
            case .length(let length): .known(Int64(clamping: length))
            case .chunked, .untilClose: .unknown
            }
        exchange.sendHead(answer, body: length)
        var decoder = BodyDecoder(framing, side: .response)
        do {
            while !decoder.isComplete {
                let content = try reader.content(&decoder)
                if !content.isEmpty {
                    try await exchange.send(content)
                } else if !decoder.isComplete,
                    try await !reader.read(until: DescriptorWaits.deadline(idle), on: loop)
                {
                    try decoder.connectionClosed()
                }
            }
            exchange.finish(trailers: decoder.trailers)
        } catch {
            // Short, malformed or late: never passed on as complete.
            exchange.fail()
        }
    }

    /// The answer where the origin is reached by https: its TLS belongs to the transfers, which cannot carry a tunnel.
    package static let unsupportedScheme = Problem(
        status: 501,
        title: "Upgrade over https not supported",
        detail: "an Upgrade is passed on to http origins only; connect to the https origin by CONNECT instead",
        proxyError: "http_upgrade_failed"
    )
    static let late = Problem(
        status: 504,
        title: "Origin timed out",
        detail: "the origin did not answer the upgrade in time; try again, or raise timeout.first_byte",
        proxyError: "http_response_timeout"
    )
    static let closed = Problem(
        status: 502,
        title: "Origin closed",
        detail: "the origin closed the connection before its answer was complete; check its log",
        proxyError: "connection_terminated"
    )
}

/// Reads an origin's answer piece by piece.
struct OriginReader {
    private let descriptor: Int32
    private let context: LoopContext
    /// What was read and not used.
    var rest: [UInt8] = []
    var framing = BodyFraming.none

    init(descriptor: Int32, context: LoopContext) {
        self.descriptor = descriptor
        self.context = context
    }

    /// Reads once; false at the end of the connection.
    mutating func read(until deadline: UInt64, on loop: isolated EventLoop) async throws(Problem) -> Bool {
        while true {
            var result = IOResult.wouldBlock
            let piece = [UInt8](unsafeUninitializedCapacity: 16384) { buffer, count in
                result = Socket.read(descriptor, into: UnsafeMutableRawBufferPointer(buffer))
                if case .bytes(let read) = result { count = read }
            }
            switch result {
            case .bytes:
                rest += piece
                return true
            case .end: return false
            case .failed: throw UpgradeTunnel.closed
            case .wouldBlock:
                let wait = await context.wait(for: descriptor, .read, until: deadline, on: loop)
                guard wait == .ready else { throw UpgradeTunnel.late }
            }
        }
    }

    /// Decodes all content that has been read.
    mutating func content(_ decoder: inout BodyDecoder) throws -> [UInt8] {
        var content: [UInt8] = []
        var position = 0
        try rest.withUnsafeBytes { raw in
            while position < raw.count, !decoder.isComplete {
                switch try decoder.next(raw, from: position) {
                case .data(let range):
                    content += raw[range]
                    position = range.upperBound
                case .needMore(let consumed), .finished(let consumed): position = consumed
                }
            }
        }
        rest.removeFirst(position)
        return content
    }
}
