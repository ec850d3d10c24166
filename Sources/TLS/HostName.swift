// Names that certificates are for: host names and addresses, checked before they come into a certificate.

import Glibc

/// The name or address of a server, as a certificate has it.
package enum HostName: Sendable, Hashable {
    /// A DNS name in lower case, of letters, digits, hyphens, underscores and dots, without a dot at its end.
    case name(String)
    /// Four or sixteen bytes.
    case address([UInt8])

    /// Reads a host as an authority or a ClientHello has it; an IPv6 address may be in brackets.
    /// - Returns: nil if it is neither a host name nor an address, or longer than 253 bytes.
    package init?(_ text: some StringProtocol) {
        var bytes = Array(text.utf8)
        if bytes.first == UInt8(ascii: "["), bytes.last == UInt8(ascii: "]") {
            bytes = Array(bytes.dropFirst().dropLast())
        }
        if let address = HostName.address(bytes) {
            self = .address(address)
            return
        }
        if bytes.last == UInt8(ascii: ".") { bytes.removeLast() }
        guard !bytes.isEmpty, bytes.count <= 253 else { return nil }
        for index in bytes.indices where (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(bytes[index]) {
            bytes[index] |= 0x20
        }
        let labels = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard labels.allSatisfy(HostName.isLabel) else { return nil }
        // A name whose last label is a number is an address that was written wrongly (URL standard).
        guard labels.last?.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) == false else {
            return nil
        }
        self = .name(String(decoding: bytes, as: UTF8.self))
    }

    /// The name, or the address in its usual text, without brackets.
    package var text: String {
        switch self {
        case .name(let name): name
        case .address(let bytes): HostName.text(ofAddress: bytes)
        }
    }

    private static func isLabel(_ label: ArraySlice<UInt8>) -> Bool {
        guard !label.isEmpty, label.count <= 63, label.first != UInt8(ascii: "-"), label.last != UInt8(ascii: "-")
        else { return false }
        return label.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
                UInt8(ascii: "_"):
                true
            default: false
            }
        }
    }

    private static func address(_ text: [UInt8]) -> [UInt8]? {
        guard !text.isEmpty, text.count < Int(INET6_ADDRSTRLEN), !text.contains(0) else { return nil }
        let cString = text.map { CChar(bitPattern: $0) } + [0]
        for (family, count) in [(AF_INET, 4), (AF_INET6, 16)] {
            var bytes = [UInt8](repeating: 0, count: count)
            if inet_pton(family, cString, &bytes) == 1 { return bytes }
        }
        return nil
    }

    /// Four or sixteen bytes in their usual text; empty for any other number.
    static func text(ofAddress bytes: [UInt8]) -> String {
        guard bytes.count == 4 || bytes.count == 16 else { return "" }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard inet_ntop(bytes.count == 4 ? AF_INET : AF_INET6, bytes, &text, socklen_t(text.count)) != nil else {
            return ""
        }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
