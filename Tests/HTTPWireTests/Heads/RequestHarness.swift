// Runs a request head through the parser in every split and says what came of it.

import HTTPWire
import Testing

/// All that a parser says about a request head it took.
struct SeenRequest: Equatable {
    var length: Int
    var head: RequestHead
    var present: FieldSet
    var framing: BodyFraming
    var keepAlive: Bool
    var expectsContinue: Bool
    var requestsUpgrade: Bool
}

enum RequestOutcome: Equatable {
    case taken(SeenRequest)
    case refused(WireError)
    case incomplete
}

/// Copies the first `count` bytes to memory of exactly that size, so that a read past the end is seen by a sanitizer.
func withPrefix<R>(_ bytes: [UInt8], _ count: Int, _ body: (UnsafeRawBufferPointer) -> R) -> R {
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
    defer { copy.deallocate() }
    copy.copyBytes(from: bytes[0..<count])
    return body(UnsafeRawBufferPointer(copy))
}

/// Parses with a buffer that grows to each of `ends` in turn.
func parseRequest(
    _ bytes: [UInt8],
    ends: some Sequence<Int>,
    limits: HeadLimits = HeadLimits(),
    with parser: inout RequestParser
) -> RequestOutcome {
    parser.reset()
    for end in ends {
        let outcome: RequestOutcome? = withPrefix(bytes, end) { buffer in
            do throws(WireError) {
                guard case .complete(let length) = try parser.parse(buffer) else { return nil }
                return .taken(
                    SeenRequest(
                        length: length,
                        head: parser.makeHead(buffer),
                        present: parser.present,
                        framing: parser.framing,
                        keepAlive: parser.keepAlive,
                        expectsContinue: parser.expectsContinue,
                        requestsUpgrade: parser.requestsUpgrade
                    )
                )
            } catch {
                return .refused(error)
            }
        }
        if let outcome { return outcome }
    }
    return .incomplete
}

/// The outcome for the whole, having checked that every split into two reads and the bytes one by one give the same.
func requestOutcome(
    _ bytes: [UInt8],
    limits: HeadLimits = HeadLimits(),
    sourceLocation: SourceLocation = #_sourceLocation
) -> RequestOutcome {
    var parser = RequestParser(limits: limits)
    let whole = parseRequest(bytes, ends: [bytes.count], with: &parser)
    for split in 0...bytes.count {
        let parts = parseRequest(bytes, ends: [split, bytes.count], with: &parser)
        #expect(parts == whole, "split at \(split)", sourceLocation: sourceLocation)
    }
    let single = parseRequest(bytes, ends: 0...bytes.count, with: &parser)
    #expect(single == whole, "byte by byte", sourceLocation: sourceLocation)
    return whole
}

/// Expects the head to be refused with this reason, however it is split.
func expectRefused(
    _ head: String,
    _ status: Int,
    _ reason: WireReason,
    limits: HeadLimits = HeadLimits(),
    sourceLocation: SourceLocation = #_sourceLocation
) {
    guard case .refused(let error) = requestOutcome(bytes(head), limits: limits, sourceLocation: sourceLocation) else {
        Issue.record("taken or incomplete: \(head.debugDescription)", sourceLocation: sourceLocation)
        return
    }
    #expect(error.status == status, sourceLocation: sourceLocation)
    #expect(error.reason == reason, sourceLocation: sourceLocation)
}

/// What the parser says of a head that it has to take, however it is split.
func expectTaken(
    _ head: String,
    limits: HeadLimits = HeadLimits(),
    sourceLocation: SourceLocation = #_sourceLocation
) throws -> SeenRequest {
    let outcome = requestOutcome(bytes(head), limits: limits, sourceLocation: sourceLocation)
    guard case .taken(let seen) = outcome else {
        Issue.record("\(outcome)", sourceLocation: sourceLocation)
        throw CancellationError()
    }
    return seen
}
