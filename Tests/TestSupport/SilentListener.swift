// An address that never answers a connect, as a host behind a broken route does.

import Glibc

/// A socket that listens and takes no connection: its queue is full. On a loopback address of its own.
package final class SilentListener: Sendable {
    package let port: Int
    private let descriptors: [Int32]

    package init(_ host: String, port: Int) throws {
        self.port = port
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        inet_pton(AF_INET, host, &address.sin_addr)
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var descriptors = [listener]
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                let length = socklen_t(MemoryLayout<sockaddr_in>.size)
                _ = bind(listener, address, length)
                _ = listen(listener, 0)
                for _ in 0..<4 {
                    let type =
                        Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
                    let filler = socket(AF_INET, type, 0)
                    _ = connect(filler, address, length)
                    descriptors.append(filler)
                }
            }
        }
        self.descriptors = descriptors
    }

    package func close() { for descriptor in descriptors { _ = Glibc.close(descriptor) } }
}
