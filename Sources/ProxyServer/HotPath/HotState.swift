// The hot path: a fresh hit in memory, or in a file that is open, or a demo answer without latency, from the read buffer to
// the socket without a task, a copy or a reference count.

import CacheStore
import DemoMode
import DownloadCore
import EventLoop
import Glibc
import HTTPCaching
import HTTPWire
import ServiceCore

/// What the hot path found for a request. For the length of one call.
struct HotMatch {
    let route: HotRoute
    /// The format that a prepared head must have.
    var headFormatID: UInt64 = 0
    /// The demo answer, which comes before stored responses.
    var demo: HotDemo?
    var reach = Reach.direct
    /// Whether a web page asks, and which one, has a say.
    var addsCredentials = false
}

/// A demo answer that was found for a request. For the length of one call.
struct HotDemo {
    // Of the route that was found, which is held as `HotRoute` says.
    unowned(unsafe) let answer: ReadyDemo
    unowned(unsafe) let ordinals: DrawOrdinals
    /// What follows the service's prefix in the target.
    let rest: UnsafeRawBufferPointer
}

/// What the hot path keeps between requests; loop-bound through its handler. Replaced as a whole with the plan.
final class HotState {
    let plan: RoutePlan
    let memory: MemoryTier
    let clock: WallClock
    let memoryStatus: HitStatus
    let diskStatus: HitStatus
    /// Each request is traced in the log. Then no host and no origin is remembered here, so that no request
    /// is answered on this path.
    let isTraced: Bool
    /// Each request is recorded in the journal. Then none is answered on this path, either.
    let isJournaled: Bool
    /// Chooses the requests that are traced, which are not answered on this path; nil if tracing is off.
    let sampler: RequestSampler?
    /// Whether a request must be looked at before this path may answer it.
    let isObserved: Bool
    /// The Via line of an answer that has no other.
    let via: [UInt8]
    // Room for a cache key and for the lines of one answer behind it; used within one call on
    // the loop, freed in deinit.
    let scratch: UnsafeMutableRawPointer
    /// Bytes of the lines.
    private let lineCapacity: Int
    private let hosts = HotNames<KnownHost>()
    /// What targets in absolute form name, over plain HTTP.
    private let authorities = HotNames<KnownAuthority>()
    static let keyCapacity = 10_240

    /// - Parameters:
    ///   - isTraced: each request is traced in the log, and takes the waiting path.
    ///   - isJournaled: each request is recorded in the journal, and takes the waiting path.
    ///   - sampler: chooses requests that are traced, and take the waiting path.
    init(
        plan: RoutePlan,
        memory: MemoryTier,
        clock: WallClock,
        isTraced: Bool = false,
        isJournaled: Bool = false,
        sampler: RequestSampler? = nil
    ) {
        self.plan = plan
        self.sampler = sampler
        isObserved = isJournaled || sampler != nil
        self.isTraced = isTraced
        self.isJournaled = isJournaled
        self.memory = memory
        self.clock = clock
        memoryStatus = HitStatus(cacheName: plan.name, detail: .memory)
        diskStatus = HitStatus(cacheName: plan.name, detail: .disk)
        via = Array("Via: \(plan.via)\r\n".utf8)
        let longest = max(memoryStatus.maximumLength, diskStatus.maximumLength)
        lineCapacity = 64 + longest
        scratch = .allocate(byteCount: Self.keyCapacity + lineCapacity, alignment: 16)
    }

    deinit { scratch.deallocate() }

    /// Behind the key.
    var lines: HotLines { HotLines(scratch + Self.keyCapacity, lineCapacity) }
    /// Over the key, which is not needed any more, and behind it.
    var longLines: HotLines { HotLines(scratch, Self.keyCapacity + lineCapacity) }

    /// Remembers a Host field that reverse mode answers; the oldest one is dropped if there are too many.
    func note(_ fresh: KnownHost) {
        if !isTraced, !hosts.contains(fresh.bytes) { hosts.add(fresh, as: fresh.bytes) }
    }

    /// Finds a Host field that reverse mode has answered before, so that it need not be parsed again.
    func known(host: UnsafeRawBufferPointer) -> KnownHost? { hosts.find(host)?.takeUnretainedValue() }

    /// Remembers the target of a request through the proxy, which is allowed, and is none of the daemon's own: the authority
    /// of a target in absolute form for all clients, and what Host says in a tunnel for its client.
    func note(_ asked: ProxyTarget, _ request: RequestHead, of client: ConnectedClient) {
        if isTraced || isJournaled { return }
        if client.isInTunnel {
            let host = Array((request.fields.first(.host) ?? "").utf8)
            if let known = client.knownAuthority, known.plan === plan, known.bytes == host { return }
            // A request without Host says nothing about one whose Host is empty.
            guard request.target.hasPrefix("/"), !host.isEmpty, host.count <= KnownAuthority.limit else { return }
            client.knownAuthority = KnownAuthority(host, asked, .tunnelled, plan)
        } else if asked.scheme == "http", client.connection.scheme == "http" {
            // In lower case and without the default port. Over TLS a target of plain HTTP is never the daemon's own.
            let bytes = Array(asked.origin.authority.utf8)
            guard bytes.count <= KnownAuthority.limit, !authorities.contains(bytes) else { return }
            authorities.add(KnownAuthority(bytes, asked, .proxied, plan), as: bytes)
        }
    }

    /// Writes the key of a GET into `key`, byte for byte as the waiting path makes it; nil where that has to decide.
    /// No allocation.
    /// - Parameters:
    ///   - tunnel: whom the client asks inside of its tunnel; nil outside of tunnels.
    ///   - hasOrigin: the request has an Origin field.
    func match(
        target: UnsafeRawBufferPointer,
        host: UnsafeRawBufferPointer?,
        in tunnel: Unmanaged<KnownAuthority>? = nil,
        hasOrigin: Bool,
        _ key: inout KeyBuffer
    ) -> HotMatch? {
        guard let first = target.first else { return nil }
        if let tunnel {
            guard first == UInt8(ascii: "/"), let host, !isTraced else { return nil }
            // The client holds it.
            return tunnel._withUnsafeGuaranteedRef { known in
                known.plan === plan && host.holds(known.bytes) ? known.match(target, hasOrigin: hasOrigin, &key) : nil
            }
        }
        if first != UInt8(ascii: "/") { return match(absolute: target, hasOrigin: hasOrigin, &key) }
        guard let host, let known = hosts.find(host) else { return nil }
        // This object holds the host, and the host the service: neither changes here.
        return known._withUnsafeGuaranteedRef { known in
            known.borrowedService(target: target)?._withUnsafeGuaranteedRef { route in
                guard let match = route.match(target, .direct, hasOrigin: hasOrigin) else { return nil }
                let isKeyed =
                    match.demo != nil || route.appendKeyStart(known, to: &key) && key.append(route.rest(target))
                return isKeyed ? match : nil
            }
        }
    }

    private func match(
        absolute target: UnsafeRawBufferPointer,
        hasOrigin: Bool,
        _ key: inout KeyBuffer
    ) -> HotMatch? {
        guard target.count > 7, target.prefix(7).elementsEqual("http://".utf8) else { return nil }
        var end = 7
        while end < target.count, target[end] != UInt8(ascii: "/") { end += 1 }
        guard end < target.count, let known = authorities.find(target.part(7..<end)) else { return nil }
        // This object holds it.
        return known._withUnsafeGuaranteedRef {
            $0.match(target.part(end..<target.count), hasOrigin: hasOrigin, &key)
        }
    }
}

@available(*, unavailable) extension HotState: Sendable {}

extension ByReach {
    /// As the subscript, here so that it costs no call.
    @inline(__always) fileprivate func of(_ reach: Reach) -> Value {
        switch reach {
        case .direct: direct
        case .proxied: proxied
        case .tunnelled: tunnelled
        }
    }
}

extension KnownAuthority {
    /// As ``HotState/match(target:host:in:hasOrigin:_:)``, of a request for this authority.
    fileprivate func match(_ path: UnsafeRawBufferPointer, hasOrigin: Bool, _ key: inout KeyBuffer) -> HotMatch? {
        guard let taker = taker(of: path) else { return nil }
        // The plan holds it.
        return borrowedRoute(of: taker)._withUnsafeGuaranteedRef { route in
            guard let match = route.match(path, reach, hasOrigin: hasOrigin) else { return nil }
            let isKeyed = match.demo != nil || key.append(keyStart(of: taker)) && key.append(route.rest(path))
            return isKeyed ? match : nil
        }
    }
}

extension ServiceRoute {
    /// What follows the prefix in a target of the service.
    @inline(__always) fileprivate func rest(_ target: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        target.part(prefix.count..<target.count)
    }

    /// As ``HotState/match(target:host:in:hasOrigin:_:)``, of a request that leads here, but for the key.
    @inline(__always) fileprivate func match(
        _ target: UnsafeRawBufferPointer,
        _ reach: Reach,
        hasOrigin: Bool
    ) -> HotMatch? {
        if hasOrigin, addsCredentials || !cors.origins.isEmpty { return nil }
        let rest = rest(target)
        guard rest.first == UInt8(ascii: "/") else { return nil }
        let endpoint = borrowedEndpoint(for: .get, rest)
        let (hotKey, headFormatID) = endpoint._withUnsafeGuaranteedRef { ($0.hotKey, $0.headFormatIDs.of(reach)) }
        switch hotKey {
        case .none:
            // A stored response is never found under a path that is refused; a demo answer would be.
            guard let demo = endpoint._withUnsafeGuaranteedRef({ $0.readyDemo }),
                !(guardsPaths && DotSegments.mayOccur(in: rest))
            else { return nil }
            let found = HotDemo(answer: demo, ordinals: ordinals, rest: rest)
            return HotMatch(
                route: HotRoute(self, endpoint),
                demo: found,
                reach: reach,
                addsCredentials: addsCredentials
            )
        case .withoutQuery: if rest.contains(UInt8(ascii: "?")) { return nil }
        case .whole: break
        }
        return HotMatch(
            route: HotRoute(self, endpoint),
            headFormatID: headFormatID,
            reach: reach,
            addsCredentials: addsCredentials
        )
    }

    /// Writes the key of a request to the daemon itself, up to what follows the prefix in the target.
    @inline(__always) fileprivate func appendKeyStart(_ host: KnownHost, to key: inout KeyBuffer) -> Bool {
        // Its key begins with the origin that a target names, which this one does not.
        if asksTarget { return false }
        guard key.append(keyPrefix) else { return false }
        guard keysHost else { return true }
        let isDefault = host.port == nil || host.port == defaultPort
        return key.append(isDefault ? host.bare : host.full) && key.append(address.basePath)
    }
}

extension HotState {
    /// Answers a GET by what is stored and fresh, or by a demo answer; `.notMine` where the waiting path has to decide.
    func answer(
        _ request: borrowing HotRequest,
        _ core: DownloadCore,
        through sender: any HotSender
    ) -> HotAnswer {
        let present = request.present
        if present.contains(.via), request.mayHavePassed(plan.name) { return .notMine }
        var key = KeyBuffer(scratch, Self.keyCapacity)
        let hasOrigin = present.contains(.origin)
        guard
            let found = match(
                target: request.target,
                host: request.host,
                in: request.tunnel,
                hasOrigin: hasOrigin,
                &key
            )
        else { return .notMine }
        if found.addsCredentials, present.contains(.secFetchSite), request.mayBeForeignFetch { return .notMine }
        if let demo = found.demo {
            // Conditions and ranges count for a demo answer, too; nothing is drawn yet.
            return present.isDisjoint(with: HotPathWindow.selecting)
                ? send(demo, found.reach, route: found.route, through: sender) : .notMine
        }
        let now = clock.now()
        let hash = CacheKey.hash(key.bytes)
        let (response, file): (ResidentResponse, ReadyFile?)
        if let held = memory.hit(key.bytes, hash: hash, where: { request.selects($0) }) {
            (response, file) = (held, nil)
        } else if let found = core.readyFile(key.bytes, hash: hash, where: { request.selects($0) }) {
            (response, file) = (found.held, found)
        } else {
            return .notMine
        }
        guard let ready = response.ready, ready.answers(at: now, as: found.headFormatID),
            // A fallback may answer in place of a stored error.
            ready.status < 500
        else { return .notMine }
        let hit = HotHit(response: response, ready: ready, file: file, now: now, route: found.route)
        // The hit stays alive until the end of the call; the queue takes a reference of its own.
        defer { withExtendedLifetime(hit) {} }
        let answer =
            present.isDisjoint(with: HotPathWindow.selecting)
            ? send(hit, through: sender) : answerSelected(hit, request, through: sender)
        if let file, answer != .notMine { core.noteUse(of: file) }
        return answer
    }

    /// The whole response; `.notMine` where its body has to be waited for.
    func send(_ hit: borrowing HotHit, through sender: any HotSender) -> HotAnswer {
        guard let body = hit.body else { return .notMine }
        // Behind the key.
        var lines = self.lines
        let cacheStatus = append(hit, to: &lines)
        return sender.sendAtOnce(
            prepared: hit.ready.head,
            dynamic: lines.bytes,
            body: body,
            owner: hit.ready.owner,
            record: HotRecord(status: hit.ready.status, route: hit.route, cacheStatus: cacheStatus, tier: hit.tier)
        )
    }

    /// Whether there is room for the lines of a ready head, and for those that every answer adds.
    func mayCopy(_ head: UnsafeRawBufferPointer) -> Bool { head.count + via.count + 256 <= Self.keyCapacity }

    /// Age and Cache-Status.
    /// - Returns: the value of Cache-Status, in the buffer.
    func append(_ hit: borrowing HotHit, to lines: inout HotLines) -> UnsafeRawBufferPointer {
        let (age, ttl) = (hit.ready.window.age(now: hit.now), hit.ready.window.ttl(now: hit.now))
        // Not chosen before, since that would copy it.
        return hit.file == nil
            ? lines.append(memoryStatus, age: age, ttl: ttl) : lines.append(diskStatus, age: age, ttl: ttl)
    }
}

extension HotPathWindow {
    /// With one of these fields a request may get less than the whole.
    static let selecting = FieldSet(.ifNoneMatch, .ifModifiedSince, .ifRange, .range)
}

/// A fresh response, found for a request. For the length of one call; not copyable, since a
/// copy would count references.
struct HotHit: ~Copyable {
    let response: ResidentResponse
    let ready: ResidentResponse.Ready
    /// What its body is in; nil where that is memory.
    let file: ReadyFile?
    /// Unix seconds.
    let now: Int64
    /// For the access log.
    let route: HotRoute

    var tier: AnswerTier { file == nil ? .memory : .disk }

    /// Of the body, in bytes.
    var length: Int { file?.length ?? ready.body.count }

    /// The whole body; nil if sending it needs a wait.
    var body: HotBody? { file == nil ? inMemory(ready.body) : body(0..<length) }

    /// A part of the body; nil if sending it needs a wait.
    func body(_ range: Range<Int>) -> HotBody? {
        guard let file else { return inMemory(ready.body.part(range)) }
        return file.piece(range).map { .file($0.file, offset: $0.offset, count: range.count) }
    }

    /// Few bytes are copied, wherever they lie.
    private func inMemory(_ bytes: UnsafeRawBufferPointer) -> HotBody {
        .memory(bytes, in: bytes.count >= Chunk.memfdThreshold ? response.file : nil)
    }
}

extension HotState {
    /// Answers as the waiting path would; `.notMine` where that has to decide.
    func answerSelected(
        _ hit: borrowing HotHit,
        _ request: borrowing HotRequest,
        through sender: any HotSender
    ) -> HotAnswer {
        let fields = request.fields
        guard fields.areEndToEnd, mayCopy(hit.ready.head) else { return .notMine }
        let validators = hit.response.validators
        if Caching.isNotModified(fields, .get, stored: validators) { return sendNotModified(hit, through: sender) }
        if !request.present.contains(.range) { return send(hit, through: sender) }
        return switch Caching.onePart(fields, stored: validators, length: Int64(hit.length)) {
        case nil: .notMine
        case .whole: send(hit, through: sender)
        case .part(let range): sendPart(hit, range, through: sender)
        }
    }

    /// A 304 repeats some lines of the ready head (RFC 9110 section 15.4.5).
    private func sendNotModified(_ hit: borrowing HotHit, through sender: any HotSender) -> HotAnswer {
        let hasTag = hit.response.hasTag
        var lines = longLines
        lines.append("HTTP/1.1 304 Not Modified\r\n")
        lines.append(hit.ready.head) { Caching.isInNotModified($0, $1, hasTag: hasTag) }
        // Not repeated, but for this proxy's own member.
        via.withUnsafeBytes { lines.append($0) }
        let cacheStatus = append(hit, to: &lines)
        return sender.sendAtOnce(
            prepared: UnsafeRawBufferPointer(start: nil, count: 0),
            dynamic: lines.bytes,
            body: .none,
            owner: hit.ready.owner,
            record: HotRecord(status: 304, route: hit.route, cacheStatus: cacheStatus, tier: hit.tier)
        )
    }

    /// A 206 with one part repeats nearly all of them (RFC 9110 section 15.3.7.1).
    private func sendPart(
        _ hit: borrowing HotHit,
        _ range: Range<Int64>,
        through sender: any HotSender
    ) -> HotAnswer {
        guard let body = hit.body(Int(range.lowerBound)..<Int(range.upperBound)) else { return .notMine }
        var lines = longLines
        lines.append("HTTP/1.1 206 Partial Content\r\n")
        lines.append(hit.ready.head) { $1 != .contentLength && Caching.isInPart($0, $1) }
        if !hit.response.acceptsRanges { lines.append("Accept-Ranges: bytes\r\n") }
        lines.append("Content-Length: ")
        lines.append(range.upperBound - range.lowerBound)
        lines.append("\r\nContent-Range: bytes ")
        lines.append(range.lowerBound)
        lines.append("-")
        lines.append(range.upperBound - 1)
        lines.append("/")
        lines.append(Int64(hit.length))
        lines.append("\r\n")
        let cacheStatus = append(hit, to: &lines)
        return sender.sendAtOnce(
            prepared: UnsafeRawBufferPointer(start: nil, count: 0),
            dynamic: lines.bytes,
            body: body,
            owner: hit.ready.owner,
            record: HotRecord(status: 206, route: hit.route, cacheStatus: cacheStatus, tier: hit.tier)
        )
    }
}

extension HotRequest {
    /// Whether the request selects a stored response beyond doubt.
    func selects(_ response: ResidentResponse) -> Bool {
        let fields = self.fields
        return fields.areEndToEnd
            && Caching.selectsPlainly(names: response.varyNames, stored: response.varyLines, fields)
    }

    /// Whether a loop is possible: the pseudonym occurs in Via, be it as another word.
    func mayHavePassed(_ pseudonym: String) -> Bool {
        var mayHave = false
        fields.forEachValue(.via) { if $0.contains(pseudonym) { mayHave = true } }
        return mayHave
    }

    /// Whether Sec-Fetch-Site says that a page of another web origin may be asking.
    var mayBeForeignFetch: Bool {
        var mayBe = false
        fields.forEachValue(.secFetchSite) { if CrossOrigin.isForeign(site: $0) { mayBe = true } }
        return mayBe
    }
}

extension UnsafeRawBufferPointer {
    /// Whether these bytes contain a word, regardless of case.
    fileprivate func contains(_ word: String) -> Bool {
        word.utf8.withContiguousStorageIfAvailable { word in
            let word = UnsafeRawBufferPointer(word)
            guard count >= word.count else { return false }
            return (0...count - word.count).contains {
                part($0..<$0 + word.count).equalsIgnoringCase(word)
            }
        } ?? true
    }
}

extension HotState {
    /// Draws and answers as the waiting path does.
    func send(_ found: HotDemo, _ reach: Reach, route: HotRoute, through sender: any HotSender) -> HotAnswer {
        guard found.rest.count + 64 <= Self.keyCapacity else { return .notMine }
        var lines = longLines
        lines.append("GET ")
        lines.append(found.rest)
        let (outcome, name) = found.answer.draw(lines.bytes, found.ordinals, to: reach)
        lines = longLines
        lines.append(hexadecimal: name.key.digest)
        lines.append(UInt8(ascii: "."))
        lines.append(Int64(truncatingIfNeeded: name.ordinal &+ 1))
        lines.append("\r\n")
        if !outcome.hasDate {
            lines.append("Date: ")
            lines.append(utf8: sender.dateText)
            lines.append("\r\n")
        }
        return outcome.head.withUnsafeBytes { head in
            sender.sendAtOnce(
                prepared: head,
                dynamic: lines.bytes,
                body: .memory(outcome.body.bytes),
                owner: .passUnretained(outcome.body),
                record: HotRecord(status: outcome.status, route: route, cache: .demo)
            )
        }
    }
}

// MARK: - What is remembered

/// Up to sixteen objects, the oldest of which makes room for the next. A look-up counts no reference. Loop-bound through
/// its owner.
struct HotNames<Named: AnyObject>: ~Copyable {
    private struct Entry {
        // A copy of the name, and a reference; this value lets go of both when it removes the entry.
        let bytes: UnsafeMutableRawBufferPointer
        let object: Unmanaged<Named>

        var name: UnsafeRawBufferPointer { UnsafeRawBufferPointer(bytes) }

        init(_ object: Named, _ name: [UInt8]) {
            bytes = .allocate(byteCount: name.count, alignment: 1)
            bytes.copyBytes(from: name)
            self.object = .passRetained(object)
        }

        func remove() {
            bytes.deallocate()
            object.release()
        }
    }

    private static var limit: Int { 16 }
    // Of `limit`, the first `count` of which are there; freed in deinit.
    private let entries: UnsafeMutablePointer<Entry>
    /// How many there are; behind a pointer, so that nothing asks for exclusive access.
    private let count: UnsafeMutablePointer<Int>

    init() {
        entries = .allocate(capacity: Self.limit)
        count = .allocate(capacity: 1)
        count.initialize(to: 0)
    }

    deinit {
        for index in 0..<count.pointee { entries[index].remove() }
        entries.deallocate()
        count.deallocate()
    }

    /// Valid until the next object is added.
    @inline(__always) func find(_ name: UnsafeRawBufferPointer) -> Unmanaged<Named>? {
        for index in 0..<count.pointee where name.holdsSame(as: entries[index].name) { return entries[index].object }
        return nil
    }

    /// An object of this name is there.
    func contains(_ name: [UInt8]) -> Bool { name.withUnsafeBytes { find($0) } != nil }

    /// Adds an object under a name that no other has.
    func add(_ fresh: Named, as name: [UInt8]) {
        if count.pointee == Self.limit {
            entries[0].remove()
            for index in 1..<Self.limit { entries[index - 1] = entries[index] }
            count.pointee -= 1
        }
        (entries + count.pointee).initialize(to: Entry(fresh, name))
        count.pointee += 1
    }
}

@available(*, unavailable) extension HotNames: Sendable {}
