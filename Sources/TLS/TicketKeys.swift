// The keys that session tickets are encrypted with: shared by all loops, and renewed.

import CLibssl
import Synchronization

/// The keys of tickets (RFC 5077, section 4): the newest encrypts, and older ones decrypt until a ticket's lifetime is over.
///
/// Sendable: the keys are values under a lock, and are copied out of it.
package final class TicketKeys: Sendable {
    struct Key: Sendable {
        let name: [UInt8]
        let cipher: [UInt8]
        let mac: [UInt8]
        let made: Int64
    }

    private let keys = Mutex<[Key]>([])
    private let lifetime: Int64
    private let now: @Sendable () -> Int64

    /// - Parameters:
    ///   - lifetime: how many seconds a key makes tickets; 43,200 by default. It decrypts for as long again.
    ///   - now: seconds of a clock that never goes back.
    package init(lifetime: Int64 = 43_200, now: @escaping @Sendable () -> Int64) {
        self.lifetime = lifetime
        self.now = now
    }

    /// The key that makes tickets now; nil if there is no randomness, and then no ticket is made.
    func current() -> Key? {
        let now = now()
        return keys.withLock { keys in
            if let newest = keys.last, now - newest.made < lifetime { return newest }
            guard let made = Key(made: now) else { return nil }
            keys.removeAll { now - $0.made >= 2 * lifetime }
            keys.append(made)
            return made
        }
    }

    /// The key of a ticket, and whether a newer one makes tickets by now; nil if the ticket is too old or not from here.
    func key(named name: UnsafeRawBufferPointer) -> (key: Key, isOld: Bool)? {
        let now = now()
        return keys.withLock { keys in
            guard let found = keys.first(where: { $0.name.elementsEqual(name) }), now - found.made < 2 * lifetime else {
                return nil
            }
            return (found, now - found.made >= lifetime)
        }
    }

    /// The keys as bytes, for the process that goes on with this one's sessions. They are secret.
    package var exported: [UInt8] {
        keys.withLock { keys in
            keys.flatMap { key in
                let made = UInt64(bitPattern: key.made)
                return key.name + key.cipher + key.mac
                    + stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: made >> $0) }
            }
        }
    }

    /// Takes over the keys of another process of this machine in place of the own ones; what is too old, or of no sense, is left out.
    /// - Parameter exported: as ``exported`` of that process, which had the same clock.
    package func adopt(_ exported: [UInt8]) {
        let now = now()
        var adopted: [Key] = []
        for start in stride(from: 0, through: exported.count - Key.size, by: Key.size) {
            let bytes = exported[start..<start + Key.size]
            let made = Int64(bitPattern: bytes.suffix(8).reduce(0) { $0 << 8 | UInt64($1) })
            guard made <= now, made > now - 2 * lifetime else { continue }
            adopted.append(Key(bytes, made: made))
        }
        adopted = adopted.suffix(Self.most)
        guard !adopted.isEmpty else { return }
        keys.withLock { $0 = adopted.sorted { $0.made < $1.made } }
    }

    /// More keys are not alive at a time.
    private static let most = 3

    /// OpenSSL's call for each ticket that is made or read (SSL_CTX_set_tlsext_ticket_key_evp_cb(3)): 0 for a full
    /// handshake, 2 for a ticket that is accepted and renewed, -1 for a failure.
    static let callback:
        @convention(c) (
            OpaquePointer?, UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<UInt8>?, OpaquePointer?, OpaquePointer?,
            Int32
        ) -> Int32 = { handle, name, vector, cipher, mac, isMaking in
            guard let handle, let name, let vector, let session = TLSSession.owner(of: handle),
                let keys = session.tickets
            else { return 0 }
            let key: Key
            var isOld = false
            if isMaking == 1 {
                guard let current = keys.current(), RAND_bytes(vector, 16) == 1 else { return -1 }
                key = current
                for index in 0..<16 { name[index] = key.name[index] }
            } else {
                guard let found = keys.key(named: UnsafeRawBufferPointer(start: name, count: 16)) else { return 0 }
                (key, isOld) = found
            }
            var macKey = key.mac
            let isReady =
                isMaking == 1
                ? EVP_EncryptInit_ex(cipher, EVP_aes_256_cbc(), nil, key.cipher, vector)
                : EVP_DecryptInit_ex(cipher, EVP_aes_256_cbc(), nil, key.cipher, vector)
            guard isReady == 1, c_mac_set_key(mac, &macKey, macKey.count) == 1 else { return -1 }
            // A ticket of TLS 1.3 is for one connection: clients forget it with its use (RFC 8446, appendix C.4).
            return isOld || (isMaking == 0 && SSL_version(handle) == TLS1_3_VERSION) ? 2 : 1
        }
}

extension TicketKeys.Key {
    /// The bytes of a key and of the time at which it was made.
    fileprivate static let size = 88

    /// A new key; nil if there is no randomness.
    fileprivate init?(made: Int64) {
        var bytes = [UInt8](repeating: 0, count: 80)
        guard RAND_bytes(&bytes, 80) == 1 else { return nil }
        self.init(bytes[...], made: made)
    }

    /// - Parameter bytes: at least 80 of them.
    fileprivate init(_ bytes: ArraySlice<UInt8>, made: Int64) {
        let rest = bytes.dropFirst(16)
        self.init(
            name: Array(bytes.prefix(16)),
            cipher: Array(rest.prefix(32)),
            mac: Array(rest.dropFirst(32).prefix(32)),
            made: made
        )
    }
}
