// Detects requests that return to the daemon that sent them, by Via and by the address of the target.

package import EventLoop
package import HTTPWire

/// Pure functions of a request and of the daemon's own names.
package enum LoopDetection {
    /// Whether one of the Via entries has this pseudonym (RFC 9110 section 7.6.3). Comments are skipped.
    package static func hasPassed(_ fields: Fields, pseudonym: String) -> Bool {
        guard fields.contains(.via) else { return false }
        let wanted = pseudonym.lowercased()
        return fields.all(.via).contains { value in
            withoutComments(value).split(separator: ",").contains { entry in
                let parts = entry.split { $0 == " " || $0 == "\t" }
                return parts.count >= 2 && parts[1].lowercased() == wanted
            }
        }
    }

    /// Whether a connection to `address` would reach one of the daemon's own listeners.
    /// - Parameter isOfMachine: returns whether an interface has the address; called only if a listener on every
    ///   address has its port.
    package static func isOwn(
        _ address: SocketAddress,
        listeners: [SocketAddress],
        isOfMachine: (SocketAddress) -> Bool = Machine.has
    ) -> Bool {
        listeners.contains { listener in
            guard !listener.isUnix, listener.port == address.port else { return false }
            if listener.ipBytes == address.ipBytes { return true }
            // A listener on every address is reached by loopback addresses, those of the interfaces, and the
            // unspecified one.
            let isWildcard = listener.ipBytes.allSatisfy { $0 == 0 }
            let isUnspecified = address.ipBytes.allSatisfy { $0 == 0 }
            return isWildcard && (address.isLoopback || isOfMachine(address))
                || isUnspecified && (listener.isLoopback || isWildcard)
        }
    }

    private static func withoutComments(_ value: String) -> String {
        var depth = 0
        var isEscaped = false
        return value.filter { character in
            if isEscaped {
                isEscaped = false
                return false
            }
            switch character {
            case "\\" where depth > 0:
                isEscaped = true
                return false
            case "(":
                depth += 1
                return false
            case ")" where depth > 0:
                depth -= 1
                return false
            default: return depth == 0
            }
        }
    }
}
