// The request's field lines in the form libcurl wants, in memory that is used again for every request.

internal import CLibcurl
internal import HTTPWire

/// A list of C strings that libcurl reads during one transfer; loop-bound. It is not libcurl's to free.
final class HeaderList {
    private var lines: [UInt8] = []
    private var starts: [Int] = []
    // Owned by this object and replaced only by `link()`, which runs while no transfer uses the list.
    private var memory = UnsafeMutablePointer<CChar>.allocate(capacity: 2048)
    private var memoryCapacity = 2048
    // As `memory`.
    private var nodes = UnsafeMutablePointer<curl_slist>.allocate(capacity: 32)
    private var nodeCapacity = 32

    deinit {
        memory.deallocate()
        nodes.deallocate()
    }

    func removeAll() {
        lines.removeAll(keepingCapacity: true)
        starts.removeAll(keepingCapacity: true)
    }

    /// Adds one line; libcurl writes a name without a value as `Name;`.
    func append(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        starts.append(lines.count)
        lines.append(contentsOf: name)
        if value.isEmpty {
            lines.append(UInt8(ascii: ";"))
        } else {
            lines.append(UInt8(ascii: ":"))
            lines.append(UInt8(ascii: " "))
            lines.append(contentsOf: value)
        }
        lines.append(0)
    }

    /// Adds a line as libcurl reads it: `Name:` keeps libcurl from adding that field itself.
    func append(_ line: String) {
        starts.append(lines.count)
        lines.append(contentsOf: line.utf8)
        lines.append(0)
    }

    /// The list; valid until the next `removeAll()`.
    func link() -> UnsafeMutablePointer<curl_slist>? {
        guard !starts.isEmpty else { return nil }
        if lines.count > memoryCapacity {
            memory.deallocate()
            memoryCapacity = lines.count * 2
            memory = .allocate(capacity: memoryCapacity)
        }
        if starts.count > nodeCapacity {
            nodes.deallocate()
            nodeCapacity = starts.count * 2
            nodes = .allocate(capacity: nodeCapacity)
        }
        lines.withUnsafeBytes { UnsafeMutableRawBufferPointer(start: memory, count: $0.count).copyMemory(from: $0) }
        for (position, start) in starts.enumerated() {
            let next = position + 1 < starts.count ? nodes + position + 1 : nil
            (nodes + position).initialize(to: curl_slist(data: memory + start, next: next))
        }
        return nodes
    }
}

@available(*, unavailable) extension HeaderList: Sendable {}
