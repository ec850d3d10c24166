// The public words of downloads in those of the modules below.

import CacheStore
import Content
import DiskStore
import DownloadCore
import EventLoop
import Files
import FoundationEssentials
import HTTPCaching
import HTTPTypes
import HTTPWire
package import Policies
import ServiceCore
import Upstream

extension DownloadRequest {
    /// The question as the download core takes it.
    /// - Parameters:
    ///   - staleWanted: only the stored response is wanted, however stale it is.
    ///   - seed: the manager's.
    func ask(_ configuration: DownloadConfiguration, staleWanted: Bool = false, seed: SeedFolder?) -> CacheRequest {
        var request = RequestHead(method: method, target: path, fields: seen)
        request.fields.set(.host, origin.authority)
        if staleWanted { request.fields.set(.cacheControl, "only-if-cached, max-stale") }
        var ask = CacheRequest(
            key: key,
            request: request,
            originFields: sent,
            path: bypassesStore ? path : keys.path(path),
            policy: configuration.policy(options, isStoring: !bypassesStore),
            headFormatID: headFormatID,
            collapse: CollapseLimits(wait: 600_000_000_000, waiters: 1_000_000),
            // A program gets the answer: no head is ever written to a socket.
            prepare: { _ in [] }
        )
        if options.usesSeeds { ask.seed = seed }
        ask.content = content.map { RequestContent($0) }
        let expect = options.expectation
        if expect != .anything || types != nil { ask.phases = PhasePlan(expect: expect, types: types) }
        // What was stored without it is a miss: nobody has looked into it.
        ask.policy.expectation = ask.phases?.expectation
        ask.urgency = FetchUrgency((options.priority ?? .normal).urgency)
        ask.onClientAbort = configuration.abandonment
        return ask
    }
}

extension DownloadConfiguration {
    /// The policy that the caching rules follow for one download.
    fileprivate func policy(_ options: DownloadOptions, isStoring: Bool) -> CachePolicy {
        var policy = CachePolicy(
            mode: isStoring ? mode(of: options).cacheMode : .none,
            ttl: (options.lifetime ?? lifetime).wholeSeconds,
            ttlByStatus: lifetimes(for: options).mapValues(\.wholeSeconds),
            overrideOrigin: overridesOrigin && options.mode == nil,
            revalidate: validation,
            staleIfError: staleIfError?.wholeSeconds,
            staleWhileRevalidate: staleWhileRevalidate.wholeSeconds,
            maxVariants: max(1, maximumVariants),
            targetedFields: [],
            memory: memory != nil,
            disk: disk != nil,
            compare: comparisons,
            checkPause: checkPause.wholeSeconds,
            gone: missing,
            minLength: minimumLength,
            setCookie: cookies.setCookie,
            cookies: cookies.requestCookie
        )
        policy.isShared = isShared
        return policy
    }

    /// Who says how long the answer to a download stays valid.
    private func mode(of options: DownloadOptions) -> Mode { options.mode ?? mode }

    /// The methods whose answers are stored.
    func storedMethods(for options: DownloadOptions) -> Set<HTTPRequest.Method> {
        options.methods ?? (mode(of: options) == .fixedLifetime ? [.get, .post] : [.get])
    }

    /// The lifetime that a download names for itself wins over what the manager says of successes.
    private func lifetimes(for options: DownloadOptions) -> [Int: Duration] {
        if let own = options.lifetimes { return own }
        return options.lifetime == nil ? lifetimes : lifetimes.filter { !(200..<300).contains($0.key) }
    }
}

extension DownloadOptions.Priority {
    /// The class in the queue of those that wait.
    package var urgency: FetchPriority {
        switch self {
        case .high: .client
        case .normal: .revalidation
        case .low: .prefetch
        }
    }
}

extension DownloadConfiguration.Mode {
    fileprivate var cacheMode: CacheMode {
        switch self {
        case .fixedLifetime: .library
        case .http: .standard
        }
    }
}

extension DownloadConfiguration.Seeds {
    /// Lists the folder; blocks.
    /// - Throws: `SeedError`, or `DownloadError` where it is no folder.
    func open(_ pool: IOPool, onTrouble: @escaping @Sendable (String) -> Void) throws -> SeedFolder {
        try SeedFolder(
            path: try folder.folderPath,
            layout: layout,
            mode: use,
            pool: pool,
            onTrouble: onTrouble
        )
    }
}

extension DownloadConfiguration {
    /// The rules by which requests have the same key.
    var keys: KeyRules { KeyRules(ignoreQuery: ignoredQueryItems, fields: keyFields.map(\.canonicalName)) }

    /// The limits of memory; all of them are 0 if nothing is kept there.
    var memoryLimits: MemoryLimits { memory ?? MemoryLimits(size: 0, count: 0, maximumEntrySize: 0) }
}

extension DownloadConfiguration.DiskStore {
    /// The limits and the folder of the disk tier.
    /// - Throws: `DownloadError.unavailable` if no folder is named and the environment names none either.
    func limits(calls: FileCalls) throws(DownloadError) -> CacheLimits.Disk {
        var disk = CacheLimits.Disk(
            path: try path,
            limits: DiskLimits(size: size, maxObject: maximumEntrySize ?? size, minFree: minimumFree),
            kind: .private
        )
        disk.calls = calls
        return disk
    }

    /// - Throws: `DownloadError.unavailable` if no folder is named and the environment names none either.
    var path: String {
        get throws(DownloadError) {
            if let folder { return try folder.folderPath }
            let process = ProcessInfo.processInfo
            let environment = process.environment
            let base = environment["XDG_CACHE_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
            guard let base = base ?? environment["HOME"].map({ $0 + "/.cache" }), base.hasPrefix("/") else {
                throw .unavailable("neither XDG_CACHE_HOME nor HOME is set: set DownloadConfiguration.disk.folder")
            }
            return "\(base)/\(process.processName)/download"
        }
    }
}

extension DownloadConfiguration.Timeouts {
    var upstream: Upstream.Timeouts {
        Upstream.Timeouts(
            connect: connect?.wholeNanoseconds,
            firstByte: firstByte?.wholeNanoseconds,
            idle: idle?.wholeNanoseconds,
            total: total?.wholeNanoseconds
        )
    }
}

extension DownloadConfiguration.TLS {
    var upstream: TLSOptions {
        var options = TLSOptions(
            verify: verifies,
            ca: authorities?.path(percentEncoded: false),
            clientCertificate: certificate?.path(percentEncoded: false),
            clientKey: key?.path(percentEncoded: false),
            pins: pins,
            caKey: "'tls.authorities'"
        )
        options.tellsChallenges = onChallenge != nil
        return options
    }
}

extension URL {
    /// - Throws: `DownloadError.unavailable` where it is no file URL.
    var folderPath: String {
        get throws(DownloadError) {
            guard isFileURL else { throw .unavailable("'\(self)' is not a folder: name it by a file URL") }
            let path = path(percentEncoded: false)
            return path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
        }
    }
}

extension HTTPResponse {
    /// The head as a program sees it, with what this cache adds.
    init(_ answer: Answer) {
        self.init(status: Status(code: answer.head.status, reasonPhrase: answer.head.reason))
        var fields = answer.head.fields
        if let age = answer.age { fields.set(.age, String(age)) }
        answer.cacheStatus?.append(to: &fields)
        headerFields = HTTPFields(fields)
    }
}
