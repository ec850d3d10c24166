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
            path: options.bypassesStore ? path : keys.path(path),
            policy: configuration.policy(options),
            headFormatID: headFormatID,
            collapse: CollapseLimits(wait: 600_000_000_000, waiters: 1_000_000),
            // A program gets the answer: no head is ever written to a socket.
            prepare: { _ in [] }
        )
        if options.usesSeeds { ask.seed = seed }
        ask.content = content.map { RequestContent($0) }
        let expect = options.expectation.content
        if expect != .any || types != nil { ask.phases = PhasePlan(expect: expect, types: types) }
        // What was stored without it is a miss: nobody has looked into it.
        ask.policy.expectation = ask.phases?.expectation
        ask.urgency = FetchUrgency((options.priority ?? .normal).urgency)
        ask.onClientAbort = configuration.leaving.clientAbort
        return ask
    }
}

extension DownloadConfiguration {
    /// The policy that the caching rules follow for one download.
    fileprivate func policy(_ options: DownloadOptions) -> CachePolicy {
        var policy = CachePolicy(
            mode: options.bypassesStore ? .none : mode(of: options).cacheMode,
            ttl: (options.lifetime ?? lifetime).wholeSeconds,
            ttlByStatus: lifetimes(for: options).mapValues(\.wholeSeconds),
            overrideOrigin: overridesOrigin && options.mode == nil,
            revalidate: check.method,
            staleIfError: staleIfError?.wholeSeconds,
            staleWhileRevalidate: staleWhileRevalidate.wholeSeconds,
            maxVariants: max(1, maximumVariants),
            targetedFields: [],
            memory: memory != nil,
            disk: disk != nil,
            compare: comparisons.map(\.rule),
            checkPause: checkPause.wholeSeconds,
            gone: gone.policy,
            minLength: minimumLength,
            setCookie: setCookie.policy,
            cookies: storesWithCookies.policy
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

extension DownloadConfiguration.Check {
    fileprivate var method: RevalidateMethod {
        switch self {
        case .head: .head
        case .conditional: .conditional
        case .automatic: .auto
        case .never: .never
        }
    }
}

extension DownloadConfiguration.Comparison {
    fileprivate var rule: CompareRule {
        switch self {
        case .entityTag: .etag
        case .lastModified: .lastModified
        case .length: .length
        }
    }
}

extension DownloadConfiguration.Gone {
    fileprivate var policy: GonePolicy {
        switch self {
        case .fail: .pass
        case .useStored: .serveStale
        case .remove: .evict
        }
    }
}

extension DownloadOptions.Expectation {
    var content: ContentExpectation {
        switch self {
        case .anything: .any
        case .json: .json
        case .jsonObject: .jsonObject
        case .jsonArray: .jsonArray
        case .propertyList: .plist
        case .image: .image
        }
    }
}

extension DownloadConfiguration.Leaving {
    fileprivate var clientAbort: ClientAbort {
        switch self {
        case .finish: .finish
        case .abort: .abort
        case .finishBeyond(let share): .finishIf(share)
        }
    }
}

extension DownloadConfiguration.Seeds {
    /// Lists the folder; blocks.
    /// - Throws: `SeedError`, or `DownloadError` where it is no folder.
    func open(_ pool: IOPool, onTrouble: @escaping @Sendable (String) -> Void) throws -> SeedFolder {
        try SeedFolder(
            path: try folder.folderPath,
            layout: layout.files,
            mode: use.mode,
            pool: pool,
            onTrouble: onTrouble
        )
    }
}

extension DownloadConfiguration.Seeds.Layout {
    var files: SeedLayout {
        switch self {
        case .url: .url
        case .docker: .docker
        }
    }
}

extension DownloadConfiguration.Seeds.Use {
    fileprivate var mode: SeedMode {
        switch self {
        case .pinned: .pinned
        case .imported: .import
        }
    }
}

extension DownloadBatch.FailureRule {
    var policy: BatchFailurePolicy {
        switch self {
        case .continue: .continue
        case .stop: .stop
        case .cancelRest: .cancelRest
        }
    }
}

extension DownloadConfiguration {
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

extension Duration {
    /// Rounded down; below zero it is zero.
    var wholeSeconds: Int64 { max(0, components.seconds) }

    /// Below zero it is zero, and it saturates.
    package var wholeNanoseconds: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        let (product, overflow) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
        return overflow ? .max : product.addingReportingOverflow(UInt64(attoseconds / 1_000_000_000)).partialValue
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
