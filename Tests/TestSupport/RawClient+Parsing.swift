// The raw client's own parser: heads, framing, chunks, and how a body ended.

import Foundation

extension RawClient {
    func expectBody(_ framing: RawFraming) {
        progress =
            switch framing {
            case .none: .ended(.complete)
            case .length(let count): .length(count)
            case .chunked: .chunkHead
            case .untilClose: .untilClose
            }
    }

    func readOneHead() throws -> RawHead {
        while true {
            if let end = find("\r\n\r\n") {
                let head = try RawHead(parsing: UnsafeRawBufferPointer(rebasing: buffer[start..<end]))
                start = end + 4
                return head
            }
            let wasEmpty = filled == start
            do {
                guard try fill() else {
                    throw wasEmpty ? RawClientError.closedWithoutAnswer : RawClientError.cutInHead
                }
            } catch TestSupportError.system(_, let code) where code == ECONNRESET {
                throw wasEmpty ? RawClientError.closedWithoutAnswer : RawClientError.cutInHead
            }
        }
    }

    /// The next body bytes, at `start` in the buffer; nil at the end of the body.
    func nextPiece(limit: Int) throws -> UnsafeRawBufferPointer? {
        while true {
            switch progress {
            case .idle, .ended: return nil
            case .length(let left):
                guard let piece = try available(min(left, limit)) else { return nil }
                progress = left == piece.count ? .ended(.complete) : .length(left - piece.count)
                return piece
            case .untilClose:
                if filled == start, try !fillOrCut() {
                    if case .untilClose = progress { progress = .ended(.complete) }
                    return nil
                }
                return available(limit, of: filled - start)
            case .chunkHead:
                guard let line = try line() else { return nil }
                guard let size = RawClient.chunkSize(line) else {
                    throw RawClientError.malformed("chunk size “\(line)”")
                }
                if size == 0 { return try readTrailers() }
                progress = .chunk(size)
            case .chunk(let left):
                guard let piece = try available(min(left, limit)) else { return nil }
                progress = left == piece.count ? .chunkEnd : .chunk(left - piece.count)
                return piece
            case .chunkEnd:
                while filled - start < 2 {
                    guard try fillOrCut() else { return nil }
                }
                guard buffer[start] == 13, buffer[start + 1] == 10 else {
                    throw RawClientError.malformed("chunk data without its CR LF")
                }
                start += 2
                progress = .chunkHead
            }
        }
    }

    private func readTrailers() throws -> UnsafeRawBufferPointer? {
        var lines = [String]()
        while let line = try line() {
            if line.isEmpty {
                trailers = try RawHead.fields(lines)
                progress = .ended(.complete)
                return nil
            }
            lines.append(line)
        }
        return nil
    }

    private static func chunkSize(_ line: String) -> Int? {
        let digits = line.prefix { $0 != ";" }
        guard !digits.isEmpty, digits.utf8.count <= 16, digits.allSatisfy(\.isHexDigit) else { return nil }
        return Int(digits, radix: 16)
    }

    private func line() throws -> String? {
        while true {
            if let end = find("\r\n") {
                defer { start = end + 2 }
                return String(decoding: buffer[start..<end], as: UTF8.self)
            }
            guard try fillOrCut() else { return nil }
        }
    }

    private func available(_ limit: Int) throws -> UnsafeRawBufferPointer? {
        if filled == start, try !fillOrCut() { return nil }
        return available(limit, of: filled - start)
    }

    private func available(_ limit: Int, of count: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: buffer[start..<(start + min(limit, count))])
    }

    private func find(_ mark: StaticString) -> Int? {
        Sockets.find(mark, in: UnsafeRawBufferPointer(rebasing: buffer[start..<filled])).map { start + $0 }
    }

    /// Reads more; at the end or after a reset the body is marked as cut.
    private func fillOrCut() throws -> Bool {
        do {
            if try fill() { return true }
            if case .untilClose = progress { return false }
        } catch TestSupportError.system(_, let code) where code == ECONNRESET {}
        progress = .ended(.cut)
        return false
    }

    func fill() throws -> Bool {
        if start == filled {
            start = 0
            filled = 0
        } else if filled == buffer.count {
            guard start > 0 else { throw RawClientError.malformed("a head or line over \(buffer.count) bytes") }
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[start..<filled]))
            filled -= start
            start = 0
        }
        let count = try Sockets.read(descriptor, into: .init(rebasing: buffer[filled...]))
        filled += count
        return count > 0
    }
}
