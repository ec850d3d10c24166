// Runs a response head through the parser in every split, as a buffer and as lines, and says what came of it.

import HTTPWire
import Testing

/// All that a parser says about a response head it took.
struct SeenResponse: Equatable {
    var length: Int
    var head: ResponseHead
    var framing: BodyFraming
    var keepAlive: Bool
}

enum ResponseOutcome: Equatable {
    case taken(SeenResponse)
    case refused(WireError)
    case incomplete
}

/// Parses with a buffer that grows to each of `ends` in turn.
func parseResponse(
    _ bytes: [UInt8],
    ends: some Sequence<Int>,
    method: HTTPWire.Method,
    with parser: inout ResponseParser
) -> ResponseOutcome {
    parser.reset()
    for end in ends {
        let outcome: ResponseOutcome? = withPrefix(bytes, end) { buffer in
            do throws(WireError) {
                guard case .complete(let length) = try parser.parse(buffer, requestMethod: method) else { return nil }
                let head = parser.makeHead(buffer)
                return .taken(
                    SeenResponse(length: length, head: head, framing: parser.framing, keepAlive: parser.keepAlive)
                )
            } catch {
                return .refused(error)
            }
        }
        if let outcome { return outcome }
    }
    return .incomplete
}

/// Feeds the bytes as raw lines, each up to its LF.
func feedResponse(_ bytes: [UInt8], method: HTTPWire.Method, with parser: inout ResponseParser) -> ResponseOutcome {
    parser.reset()
    for line in rawLines(bytes) {
        do throws(WireError) {
            guard case .complete(let length) = try feed(line, method, &parser) else { continue }
            let head = parser.makeHead()
            return .taken(
                SeenResponse(length: length, head: head, framing: parser.framing, keepAlive: parser.keepAlive)
            )
        } catch {
            return .refused(error)
        }
    }
    return .incomplete
}

/// Feeds one line.
func feed(
    _ line: [UInt8],
    _ method: HTTPWire.Method,
    _ parser: inout ResponseParser
) throws(WireError) -> ParseProgress {
    let result: Result<ParseProgress, WireError> = withPrefix(line, line.count) { buffer in
        do throws(WireError) {
            return .success(try parser.feedLine(buffer, requestMethod: method))
        } catch {
            return .failure(error)
        }
    }
    return try result.get()
}

/// The bytes cut after each LF.
func rawLines(_ bytes: [UInt8]) -> [[UInt8]] {
    var lines: [[UInt8]] = [[]]
    for byte in bytes {
        lines[lines.count - 1].append(byte)
        if byte == 0x0A { lines.append([]) }
    }
    return lines.filter { !$0.isEmpty }
}

/// The outcome for the whole, having checked that every split into two reads, the bytes one by one, and the lines
/// one by one give the same.
func responseOutcome(
    _ bytes: [UInt8],
    method: HTTPWire.Method = .get,
    parser: consuming ResponseParser = ResponseParser(),
    sourceLocation: SourceLocation = #_sourceLocation
) -> ResponseOutcome {
    let whole = parseResponse(bytes, ends: [bytes.count], method: method, with: &parser)
    for split in 0...bytes.count {
        let parts = parseResponse(bytes, ends: [split, bytes.count], method: method, with: &parser)
        #expect(parts == whole, "split at \(split)", sourceLocation: sourceLocation)
    }
    let single = parseResponse(bytes, ends: 0...bytes.count, method: method, with: &parser)
    #expect(single == whole, "byte by byte", sourceLocation: sourceLocation)
    let lines = feedResponse(bytes, method: method, with: &parser)
    #expect(lines == whole, "line by line", sourceLocation: sourceLocation)
    return whole
}
