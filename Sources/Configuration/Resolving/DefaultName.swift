// The daemon's name where the file gives none: one that no other daemon has, so that daemons
// can be chained as they are.

import FoundationEssentials
import Glibc
import HTTPCaching

enum DefaultName {
    /// `drydock-` and eight digits of a digest of this machine and of what the daemon listens on: the same at every
    /// start, and another one on another machine or another address. It shows neither of them to those who read Via.
    ///
    /// With port 0 the kernel chooses another port at every start; the process is part of the digest then.
    static func made(listen: [ListenAddress], machine: String = machine, process: Int32 = getpid()) -> String {
        var parts = [machine] + listen.map(\.description)
        if listen.contains(where: \.hasAnyPort) { parts.append(String(process)) }
        // Only MD5 is ever refused.
        let digest = ContentDigest.sha256.hex(parts.joined(separator: "\n").utf8) ?? ""
        return "drydock-" + digest.prefix(8)
    }

    /// The host name, and what tells machines of one name apart: the machine ID of systemd, where there is one.
    private static let machine: String = {
        var buffer = [CChar](repeating: 0, count: 256)
        // The last byte stays zero, whatever the length of the name.
        let isKnown = gethostname(&buffer, buffer.count - 1) == 0
        let host =
            isKnown ? String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self) : ""
        return host + "\n" + ((try? String(contentsOfFile: "/etc/machine-id", encoding: .utf8)) ?? "")
    }()
}

extension ListenAddress {
    fileprivate var hasAnyPort: Bool {
        if case .tcp(_, port: 0) = self { true } else { false }
    }
}
