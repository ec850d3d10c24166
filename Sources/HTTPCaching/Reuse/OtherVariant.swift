// The stored variant that may answer a request that selects none, if the daemon is offline, or if the configuration
// lets it stand in when the origin fails.

package import HTTPWire

/// A stored variant for a request that does not select it.
package struct OtherVariant: Sendable, Equatable {
    /// The index of the variant in the list that the caller gave.
    package let index: Int
    /// Whether its content coding has to be removed, since the request does not accept it.
    package let isDecoded: Bool
    /// The decision as if the request had selected the variant.
    package let decision: ReuseDecision
}

extension Caching {
    /// The best variant that the request's Accept, Accept-Encoding and Accept-Language do not forbid; nil if there is
    /// none. A difference in any other field forbids it, as Vary says (RFC 9111 section 4.1).
    ///
    /// The media type must be one that Accept names. A language that Accept-Language does not name is the last choice,
    /// as it may be an origin's (RFC 9110 section 12.5.4). Of several variants the one with the best weight is chosen,
    /// then one that need not be decoded, then the most recent.
    ///
    /// - Parameter failed: the failure of the origin, if the policy lets another variant stand in for it: then a
    ///   variant must be fresh, or might stand in as a stale response to its own request. Nil: the daemon is offline,
    ///   and age does not count.
    package static func otherVariant(
        among variants: [StoredHead],
        request: RequestHead,
        policy: CachePolicy,
        now: Int64,
        failed: FailedCheck? = nil
    ) -> OtherVariant? {
        if let failed, !mayStandIn(for: failed, request, policy) { return nil }
        let wish = Negotiation(request.fields)
        let mayDecode = !CacheControl(request: request.fields).noTransform
        var best: (weight: Int, other: OtherVariant)?
        for (index, variant) in variants.enumerated() {
            let names = variant.varyNames
            guard !names.isEmpty, !names.contains("*"),
                let coding = wish.coding(of: variant.fields, mayDecode: mayDecode),
                case let weight = wish.mediaWeight(of: variant.fields) * wish.languageWeight(of: variant.fields),
                weight > 0
            else { continue }
            // The twin is the request as the one that brought the variant negotiated it.
            var twin = request
            for name in names where Negotiation.names.contains(name) {
                twin.fields.remove(name)
                for value in variant.varyFields.all(name) { twin.fields.append(name, value) }
            }
            let decision = lookup(request: twin, stored: variant, policy: policy, now: now, isOffline: failed == nil)
            guard mayAnswer(variant, decision, twin, policy: policy, failed: failed) else { continue }
            let other = OtherVariant(index: index, isDecoded: coding == .takenOff, decision: decision)
            if let known = best {
                let isBetter =
                    weight != known.weight
                    ? weight > known.weight
                    : other.isDecoded != known.other.isDecoded
                        ? !other.isDecoded : isMoreRecent(variant, than: variants[known.other.index])
                guard isBetter else { continue }
            }
            best = (weight, other)
        }
        return best?.other
    }

    private static func mayStandIn(for failed: FailedCheck, _ request: RequestHead, _ policy: CachePolicy) -> Bool {
        let isFailure = failed.errorStatus.map(policy.countsAsFailure) ?? true
        // Only the origin may refuse for preconditions (RFC 9111 section 4.3.2), and only for a response that the
        // request selects.
        return policy.otherVariant == .serve && isFailure && !hasPreconditions(request) && !onlyIfCached(request)
    }

    /// - Parameter twin: the request, changed so that it selects the variant.
    private static func mayAnswer(
        _ variant: StoredHead,
        _ decision: ReuseDecision,
        _ twin: RequestHead,
        policy: CachePolicy,
        failed: FailedCheck?
    ) -> Bool {
        if failed != nil, variant.status >= 500 || policy.countsAsFailure(variant.status) { return false }
        switch decision {
        case .fresh, .staleAllowed:
            guard failed != nil else { return true }
            let refusal = ResponseControl(variant.fields, policy: policy).staleProhibition(
                status: variant.status,
                policy: policy
            )
            // The s-maxage of a fresh response does not forbid it.
            return refusal == nil || refusal == .sMaxAge
        case .stale(_, let by, _):
            guard let failed else { return false }
            return mayServeStale(
                stored: variant,
                policy: policy,
                staleness: by,
                request: twin,
                errorStatus: failed.errorStatus
            ).isAllowed
        case .mismatch, .onlyIfCachedMiss: return false
        }
    }

    /// The head of a stored response without its content coding: another representation, with its own entity tag, and
    /// without the fields that described the coded bytes.
    package static func decoded(_ stored: StoredHead) -> StoredHead {
        var head = stored
        for field in [KnownField.contentEncoding, .contentLength, .contentRange, .acceptRanges, .trailer] {
            head.fields.remove(field)
        }
        for name in MappedOrigin.digests { head.fields.remove(name) }
        if let tag = stored.fields.first(.etag) {
            let digest = ContentDigest.sha256.hex(Array("identity \(tag)".utf8))
            if let digest {
                head.fields.set(.etag, "\(tag.hasPrefix("W/") ? "W/" : "")\"\(digest.prefix(32))\"")
            } else {
                head.fields.remove(.etag)
            }
        }
        head.bodyLength = nil
        return head
    }
}

/// The preferences of a request (RFC 9110 section 12.5).
private struct Negotiation {
    enum Coding {
        case asItIs, takenOff
    }

    /// The request fields with preferences, in lower case.
    static let names: Set<String> = ["accept", "accept-encoding", "accept-language"]
    /// The codings that can be removed.
    private static let decodable: Set<String> = ["gzip", "x-gzip", "deflate", "br"]

    /// The preferred media types; nil if the request has no Accept.
    private let media: [Preference]?
    private let codings: [Preference]?
    private let languages: [Preference]?

    init(_ fields: Fields) {
        media = Self.preferences(fields, "accept")
        codings = Self.preferences(fields, "accept-encoding")
        languages = Self.preferences(fields, "accept-language")
    }

    /// The preferences in the lines of a field. Malformed members accept nothing.
    private static func preferences(_ fields: Fields, _ name: String) -> [Preference]? {
        let values = fields.values(named: name)
        guard !values.isEmpty else { return nil }
        return values.flatMap { value in
            ASCII.listMembers(value).compactMap { Preference($0, isMediaRange: name == "accept") }
        }
    }

    /// The weight of the response's media type for the request, in thousandths; 0 forbids it.
    func mediaWeight(of fields: Fields) -> Int {
        guard let media else { return Preference.full }
        let parts = (fields.first(.contentType) ?? "").split(separator: ";").map { part in
            ASCII.lowercased(part.utf8.filter { !ASCII.isSpace($0) })
        }
        let type = parts.first ?? ""
        var best = (rank: -1, weight: 0)
        for range in media {
            let name = String(decoding: range.value, as: UTF8.self)
            let rank: Int
            if name == "*/*" {
                rank = 0
            } else if name.hasSuffix("/*"), type.hasPrefix(name.dropLast()) {
                rank = 1
            } else if name == type {
                rank = 2 + range.parameters.count
            } else {
                continue
            }
            let hasAll = range.parameters.allSatisfy { parts.dropFirst().contains(ASCII.lowercased($0)) }
            if hasAll, rank > best.rank { best = (rank, range.weight) }
        }
        return best.weight
    }

    /// The weight of the response's language for the request, in thousandths; 1 for a language that is neither named
    /// nor refused, 0 for one that is forbidden.
    func languageWeight(of fields: Fields) -> Int {
        guard let languages else { return Preference.full }
        let tags = (fields.combined("content-language") ?? "").split(separator: ",").map { tag in
            ASCII.lowercased(tag.utf8.filter { !ASCII.isSpace($0) })
        }.filter { !$0.isEmpty }
        let any = languages.first { $0.value == [UInt8(ascii: "*")] }?.weight
        if tags.isEmpty { return any == 0 ? 0 : 1 }
        return tags.map { tag in
            let matching = languages.filter { range in
                let name = String(decoding: range.value, as: UTF8.self)
                return name == tag || tag.hasPrefix(name + "-") || name.hasPrefix(tag + "-")
            }
            let longest = matching.max { $0.value.count < $1.value.count }
            return longest?.weight ?? any ?? 1
        }.max() ?? 0
    }

    /// The form in which the request accepts the response; nil if it accepts it neither in its coding nor without it.
    func coding(of fields: Fields, mayDecode: Bool) -> Coding? {
        let names = (fields.combined(.contentEncoding) ?? "").split(separator: ",").map { name in
            ASCII.lowercased(name.utf8.filter { !ASCII.isSpace($0) })
        }.filter { !$0.isEmpty && $0 != "identity" }
        let acceptsIdentity = weight(of: "identity") ?? weight(of: "*") ?? Preference.full > 0
        if names.isEmpty { return acceptsIdentity ? .asItIs : nil }
        let isWanted = codings != nil && names.allSatisfy { weight(of: $0) ?? weight(of: "*") ?? 0 > 0 }
        if isWanted { return .asItIs }
        let canDecode =
            names.count == 1 && Self.decodable.contains(names[0]) && mayDecode
            && !CacheControl(fields).noTransform
        if canDecode, acceptsIdentity { return .takenOff }
        // Without Accept-Encoding any coding is acceptable (RFC 9110 section 12.5.3), but no coding is preferred.
        return codings == nil ? .asItIs : nil
    }

    private func weight(of coding: String) -> Int? {
        let plain = coding == "x-gzip" ? "gzip" : coding
        return codings?.first { preference in
            let name = String(decoding: preference.value, as: UTF8.self)
            return (name == "x-gzip" ? "gzip" : name) == plain
        }?.weight
    }
}
