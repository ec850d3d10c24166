// The request's field lines in the form libcurl wants, in memory that is used again for every request.

import CLibcurl
import HTTPWire

/// A list of C strings that libcurl reads during one transfer; loop-bound. It is not libcurl's to free.
final class HeaderList {
    // Both are owned by this object and replaced only while entries are added, when no transfer uses the list.
    private var memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 2048, alignment: 1)
    private var nodes = UnsafeMutableBufferPointer<curl_slist>.allocate(capacity: 32)
    private var used = 0
    /// Where the entries begin.
    private var starts: [Int] = []

    deinit {
        memory.deallocate()
        nodes.deallocate()
    }

    func removeAll() {
        used = 0
        starts.removeAll(keepingCapacity: true)
    }

    /// Adds one line; libcurl writes a name without a value as `Name;`.
    func append(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        starts.append(used)
        write(name)
        if value.isEmpty {
            write(UInt8(ascii: ";"))
        } else {
            write(UInt8(ascii: ":"))
            write(UInt8(ascii: " "))
        }
        write(value)
        write(0)
    }

    /// Adds a line as libcurl reads it: `Name:` keeps libcurl from adding that field itself.
    func append(_ line: String) {
        starts.append(used)
        var line = line
        line.withUTF8 { write(UnsafeRawBufferPointer($0)) }
        write(0)
    }

    /// Adds all lines except Host as one entry: libcurl writes an entry as it is, and searches all entries for each
    /// field that it might add itself. No value may be empty.
    func appendTogether(_ fields: Fields) {
        let start = used
        fields.forEachRun(without: .host) { write($0) }
        guard used > start else { return }
        starts.append(start)
        // libcurl ends the last line itself.
        used -= 2
        write(0)
    }

    /// The list; valid until the next `removeAll()`.
    func link() -> UnsafeMutablePointer<curl_slist>? {
        guard !starts.isEmpty else { return nil }
        if starts.count > nodes.count {
            nodes.deallocate()
            nodes = .allocate(capacity: starts.count * 2)
        }
        guard let text = memory.baseAddress, let first = nodes.baseAddress else { return nil }
        for position in starts.indices {
            let next = position + 1 < starts.count ? first + position + 1 : nil
            let data = (text + starts[position]).assumingMemoryBound(to: CChar.self)
            (first + position).initialize(to: curl_slist(data: data, next: next))
        }
        return first
    }

    // MARK: - Bytes

    private func write(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress, !bytes.isEmpty else { return }
        makeRoom(for: bytes.count)
        memory.baseAddress.map { ($0 + used).copyMemory(from: source, byteCount: bytes.count) }
        used += bytes.count
    }

    private func write(_ byte: UInt8) {
        makeRoom(for: 1)
        memory[used] = byte
        used += 1
    }

    private func makeRoom(for count: Int) {
        guard count > memory.count - used else { return }
        let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: 2 * (used + count), alignment: 1)
        larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[..<used]))
        memory.deallocate()
        memory = larger
    }
}

@available(*, unavailable) extension HeaderList: Sendable {}
