// A client of either carrier, which sees of an answer what HTTP means by it, and not how it was carried.

import Glibc
import TestSupport
import Testing

@testable import ProxyServer

/// The carriers that exchanges are tested over.
enum Carriage: String, CaseIterable, Sendable {
    case http1 = "http/1.1"
    case framed = "frames"
}

/// What a client got.
struct CarriedAnswer: Equatable {
    var interim: [Int] = []
    var status = 0
    /// In order, without those that say how an answer is carried, or when.
    var fields: [String] = []
    var body: [UInt8] = []
    var trailers: [String] = []
    /// The answer has ended in order.
    var isWhole = false

    var text: String { String(decoding: body, as: UTF8.self) }

    func field(_ name: String) -> String? {
        fields.first { $0.hasPrefix("\(name): ") }.map { String($0.dropFirst(name.count + 2)) }
    }

    static func shown(_ fields: [(name: String, value: String)]) -> [String] {
        let carriage = ["connection", "transfer-encoding", "date"]
        return fields.filter { !carriage.contains($0.name.lowercased()) }.map { "\($0.name): \($0.value)" }
    }
}

/// One connection; used by one thread at a time.
final class CarriedClient {
    let raw: RawClient
    private let carriage: Carriage
    private var last: UInt32 = 0
    /// Answers that are not over, and those that nobody has asked for yet.
    private var open: [UInt32: CarriedAnswer] = [:]
    private var over: [UInt32: CarriedAnswer] = [:]

    /// Knocks, if the listener of the port waits for that.
    init(port: Int, _ carriage: Carriage, knocks: Bool = true, receiveBuffer: Int? = nil) throws {
        raw = try RawClient(port: port, receiveBuffer: receiveBuffer)
        self.carriage = carriage
        guard knocks else { return }
        let knock = Array("[\(carriage.rawValue)]".utf8)
        try raw.send(knock)
        guard try raw.readRaw(knock.count) == knock else { throw TestSupportError.failed("not let in") }
    }

    func ask(
        _ target: String,
        method: String = "GET",
        fields: [(String, String)] = [],
        body: [UInt8]? = nil
    ) throws -> CarriedAnswer {
        let number = try send(target, method: method, fields: fields, body: body)
        return try answer(to: number, method: method)
    }

    /// Sends a request; its number is for ``answer(to:method:)``, in any order with frames.
    func send(
        _ target: String,
        method: String = "GET",
        fields: [(String, String)] = [],
        body: [UInt8]? = nil
    ) throws -> UInt32 {
        last += 1
        guard carriage == .framed else {
            try raw.request(method, target, fields: fields, body: body)
            return last
        }
        let length = body.map { [("Content-Length", "\($0.count)")] } ?? []
        let head = FramedHead("\(method) \(target)", [("Host", "localhost")] + fields + length)
        try send(Frame(kind: body == nil ? .ask : .post, number: last, content: head.bytes))
        guard let body else { return last }
        for start in stride(from: 0, to: body.count, by: Frame.longest) {
            let piece = Array(body[start..<min(body.count, start + Frame.longest)])
            try send(Frame(kind: .content, number: last, content: piece))
        }
        try send(Frame(kind: .end, number: last))
        return last
    }

    func send(_ frame: Frame) throws { try raw.send(frame.bytes) }

    func answer(to number: UInt32, method: String = "GET") throws -> CarriedAnswer {
        guard carriage == .framed else { return try CarriedAnswer(raw.readResponse(method: method)) }
        while true {
            if let answer = over.removeValue(forKey: number) { return answer }
            guard let frame = try nextFrame() else {
                // The connection has ended before the answer.
                return open.removeValue(forKey: number) ?? CarriedAnswer()
            }
            if take(frame) { over[frame.number] = open.removeValue(forKey: frame.number) }
        }
    }

    /// - Returns: whether the answer is over.
    private func take(_ frame: Frame) -> Bool {
        var answer = open[frame.number, default: CarriedAnswer()]
        defer { open[frame.number] = answer }
        let head = FramedHead(frame.kind == .content ? [] : frame.content)
        switch frame.kind {
        case .interim: answer.interim.append(Int(head.first) ?? 0)
        case .head:
            answer.status = Int(head.first.prefix(3)) ?? 0
            answer.fields = CarriedAnswer.shown(head.fields)
        case .content: answer.body += frame.content
        case .end:
            answer.trailers = CarriedAnswer.shown(head.fields)
            answer.isWhole = true
            return true
        case .reset: return true
        case .garbage, .ask, .post: break
        }
        return false
    }

    /// The next frame; nil at the end of the connection.
    func nextFrame() throws -> Frame? {
        do {
            let head = try raw.readRaw(Frame.headLength)
            var frame = try #require(Frame(headOf: head))
            var left = frame.length
            while left > 0 {
                frame.content += try raw.readRaw(min(left, 32 << 10))
                left = frame.length - frame.content.count
            }
            return frame
        } catch is RawClientError {
            return nil
        } catch TestSupportError.system(_, let code) where code == ECONNRESET {
            return nil
        }
    }

    /// Has nothing to do with the server any more, at once.
    func leave() { raw.reset() }
}

extension CarriedAnswer {
    init(_ response: RawResponse) {
        interim = response.interim.map(\.status)
        status = response.status
        fields = Self.shown(response.head.fields)
        body = response.body
        trailers = Self.shown(response.trailers)
        isWhole = response.end == .complete
    }
}
