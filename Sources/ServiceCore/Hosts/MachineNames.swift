// The names and addresses of this machine, by which clients of the network reach it.

package import EventLoop
import FoundationEssentials
import Glibc

/// The machine's properties, read from the system each time; no name server is asked.
package enum Machine {
    /// The host name, its first label, that label below `local` (multicast DNS, RFC 6762), and the full names that
    /// `/etc/hosts` gives it; in lower case. Reads a file.
    package static func names() -> Set<String> {
        names(hostName(), hosts: (try? String(contentsOfFile: "/etc/hosts", encoding: .utf8)) ?? "")
    }

    /// The names of the machine.
    /// - Parameters:
    ///   - hostName: the host name; empty for none.
    ///   - hosts: the text of `/etc/hosts`.
    static func names(_ hostName: String, hosts: String) -> Set<String> {
        let name = hostName.lowercased()
        guard let label = name.split(separator: ".").first.map(String.init) else { return [] }
        var names: Set<String> = [name, label, label + ".local"]
        for line in hosts.lowercased().split(whereSeparator: \.isNewline) {
            let known = line.prefix { $0 != "#" }.split { $0 == " " || $0 == "\t" }.dropFirst().map(String.init)
            guard known.contains(where: { $0 == name || $0 == label }) else { continue }
            names.formUnion(known.filter { $0.hasPrefix(label + ".") })
        }
        return names
    }

    private static func hostName() -> String {
        var buffer = [CChar](repeating: 0, count: 256)
        // The last byte stays zero, whatever the length of the name.
        guard gethostname(&buffer, buffer.count - 1) == 0 else { return "" }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Whether an interface of this machine has the address, whatever the port.
    package static func has(_ address: SocketAddress) -> Bool {
        var first: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&first) == 0 else { return false }
        // The list is read below, and freed when this function returns.
        defer { freeifaddrs(first) }
        var next = first
        while let interface = next?.pointee {
            next = interface.ifa_next
            guard let own = interface.ifa_addr else { continue }
            let length: Int
            switch Int32(own.pointee.sa_family) {
            case AF_INET: length = MemoryLayout<sockaddr_in>.size
            case AF_INET6: length = MemoryLayout<sockaddr_in6>.size
            default: continue
            }
            if SocketAddress(own, length: socklen_t(length)).ipBytes == address.ipBytes { return true }
        }
        return false
    }
}
