// Who asks, for the store: a question's credentials and cookies, and the digests under which its answers are kept apart.

import Content
import EventLoop
import Files
import HTTPCaching
import HTTPWire
import ServiceCore

/// A question with what its manager adds to it. The credentials and cookies themselves go to the origin alone: rules,
/// keys and stored fields have digests of them under a secret of the store.
///
/// A reference, for it is copied with every question. Sendable: nothing in it changes.
final class StoreIdentity: Sendable {
    /// The fields as they go to the origin.
    let sent: Fields
    /// The fields as rules and store see them.
    let seen: Fields
    /// What the key has behind the URL; nil where answers are the same for everybody.
    let line: String?
    /// The digest of the owner of the answers, in a shared cache as well; nil if they are nobody's.
    let holder: String?
    /// The account whose credentials of the manager are in it; nil if they are the request's own, or there are none.
    let account: String?
    /// The cookies of the manager that are in it.
    let cookies: String?

    init(sent: Fields, seen: Fields, line: String?, holder: String?, account: String?, cookies: String?) {
        (self.sent, self.seen) = (sent, seen)
        (self.line, self.holder, self.account, self.cookies) = (line, holder, account, cookies)
    }
}

/// Finds out who asks. It changes with the cookies, and with what the program says of its credentials.
///
/// Sendable: its members are.
final class StoreIdentities: Sendable {
    private static let guarded = FieldSet(.authorization, .cookie)

    private let isShared: Bool
    /// Answers to requests with cookies are the same for everybody.
    private let ignoresCookies: Bool
    private let secret: [UInt8]
    let table: CredentialTable?
    let jar: CookieJar?

    /// - Parameter secret: at least 16 random bytes, the same as long as what is stored is there.
    init(_ configuration: DownloadConfiguration, secret: [UInt8], _ table: CredentialTable?, _ jar: CookieJar?) {
        isShared = configuration.isShared
        ignoresCookies = configuration.cookies.requestCookie == .any
        self.secret = secret
        self.table = table
        self.jar = jar
    }

    /// The question as it is asked at this moment.
    /// - Parameter now: Unix seconds.
    func identified(_ question: DownloadRequest, now: Int64) -> DownloadRequest {
        var question = question
        question.identity = identity(of: question, now: now)
        return question
    }

    private func identity(of question: DownloadRequest, now: Int64) -> StoreIdentity? {
        let own = question.fields
        let keys = isShared ? [] : Self.keys(in: own)
        if table == nil, jar == nil, keys.isEmpty, own.present.isDisjoint(with: Self.guarded) { return nil }
        var (sent, seen) = (own, own)
        var material: [String] = []
        var account: String?
        if own.contains(.authorization) {
            material.append("own \(own.combined(.authorization) ?? "")")
        } else if let table, !question.scope.isWithin(table, question.origin.root),
            let credentials = table.account(for: question.origin)?.credentials,
            let value = credentials.value
        {
            sent.set(.authorization, value)
            account = credentials.identity
            material.append(credentials.identity)
        }
        if let text = material.first { seen.set(.authorization, digest("authorization", text)) }
        var cookies: String?
        if !own.contains(.cookie) {
            cookies = jar?.line(for: question.origin, path: question.path, now: now)
            if let cookies { sent.set(.cookie, cookies) }
        }
        if let cookie = sent.combined(.cookie) {
            seen.set(.cookie, digest("cookie", cookie))
            if !ignoresCookies { material.append("cookie \(cookie)") }
        }
        material += keys
        guard sent.contains(.authorization) || sent.contains(.cookie) || !keys.isEmpty else { return nil }
        let holder = material.isEmpty ? nil : digest("key", material.joined(separator: "\n"))
        return StoreIdentity(
            sent: sent,
            seen: seen,
            line: isShared ? nil : holder.map { "credentials \($0)" },
            holder: holder,
            account: account,
            cookies: cookies
        )
    }

    /// Other fields that say who asks, such as X-Api-Key: an origin that answers `private` need not name them in Vary.
    private static func keys(in fields: Fields) -> [String] {
        var found: [String] = []
        fields.forEachLine { name, value, known in
            guard known == .other || secrets.contains(known) else { return }
            let name = String(decoding: name, as: UTF8.self)
            guard SecretNames.contains(name) else { return }
            found.append("field \(name.lowercased()): \(String(decoding: value, as: UTF8.self))")
        }
        return found
    }

    /// The known fields that are secrets by their names, without those that count by themselves. Every download asks, and
    /// the words of a name take longer than all else that is said of its fields.
    private static let secrets = KnownField.allCases.reduce(into: FieldSet()) { secrets, field in
        if !guarded.contains(field), SecretNames.contains(field.name) { secrets.insert(field) }
    }

    private func digest(_ purpose: String, _ text: String) -> String {
        let message = Array("drydock \(purpose)\n\(text)".utf8)
        // Without a digest nothing is found again, and nothing is given away.
        let digits = ContentDigest.keyed(message, by: secret) ?? String(UInt64.random(in: 0 ... .max), radix: 16)
        return "hmac-sha-256=\(digits)"
    }

    /// The secret of a store's folder; one for this manager alone where there is no folder. Blocks.
    static func secret(ofFolder path: String?) -> [UInt8] {
        let found = path.map { WholeFile.readOwn("\($0)/secret") } ?? []
        return found.count >= 16 ? found : (0..<32).map { _ in UInt8.random(in: 0 ... .max) }
    }
}
