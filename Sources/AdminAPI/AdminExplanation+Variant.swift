// One stored response in the document of an explanation, with the terms of its age.

extension AdminExplanation {
    /// The terms of RFC 9111 section 4.2.3.
    package struct Age: Codable, Sendable, Equatable {
        package var dateValue: Int64
        package var requestTime: Int64
        package var responseTime: Int64
        package var ageValue: Int64
        package var apparentAge: Int64
        package var responseDelay: Int64
        package var correctedAgeValue: Int64
        package var correctedInitialAge: Int64
        package var residentTime: Int64
        package var currentAge: Int64

        package init(
            dateValue: Int64,
            requestTime: Int64,
            responseTime: Int64,
            ageValue: Int64,
            apparentAge: Int64,
            responseDelay: Int64,
            correctedAgeValue: Int64,
            correctedInitialAge: Int64,
            residentTime: Int64,
            currentAge: Int64
        ) {
            self.dateValue = dateValue
            self.requestTime = requestTime
            self.responseTime = responseTime
            self.ageValue = ageValue
            self.apparentAge = apparentAge
            self.responseDelay = responseDelay
            self.correctedAgeValue = correctedAgeValue
            self.correctedInitialAge = correctedInitialAge
            self.residentTime = residentTime
            self.currentAge = currentAge
        }
    }

    package struct Selecting: Codable, Sendable, Equatable {
        package var name: String
        /// Nil where the stored request had no such field.
        package var stored: String?
        package var asked: String?
        package var matches: Bool

        package init(name: String, stored: String? = nil, asked: String? = nil, matches: Bool) {
            self.name = name
            self.stored = stored
            self.asked = asked
            self.matches = matches
        }
    }

    package struct Variant: Codable, Sendable, Equatable {
        package var status: Int
        /// Of the body; nil where it is not known.
        package var size: Int64?
        /// Where not all of it is stored: the first and the last byte of each part.
        package var parts: [String]?
        /// The fastest first.
        package var tiers: [String]
        package var etag: String?
        package var lastModified: String?
        package var groups: [String]
        package var selecting: [Selecting]
        package var age: Age
        package var lifetime: Int64
        /// What is compared with the lifetime, in seconds: the age, or in library mode the time
        /// since it came or was checked.
        package var timeInUse: Int64
        /// Where the lifetime comes from.
        package var source: Ruling
        /// Freshness left, below zero staleness.
        package var ttl: Int64
        package var isChosen: Bool
        /// A rule has invalidated it, so that it never answers.
        package var isInvalidated: Bool
        /// The decision of the caching rules about this response alone.
        package var decision: Ruling
        /// Up to which staleness it answers where the origin fails; nil where it does not.
        package var staleIfError: Int64?
        /// Why it does not.
        package var staleRefusal: Ruling?

        package init(
            status: Int,
            size: Int64? = nil,
            parts: [String]? = nil,
            tiers: [String],
            etag: String? = nil,
            lastModified: String? = nil,
            groups: [String],
            selecting: [Selecting],
            age: Age,
            lifetime: Int64,
            timeInUse: Int64,
            source: Ruling,
            ttl: Int64,
            isChosen: Bool,
            isInvalidated: Bool,
            decision: Ruling,
            staleIfError: Int64? = nil,
            staleRefusal: Ruling? = nil
        ) {
            self.status = status
            self.size = size
            self.parts = parts
            self.tiers = tiers
            self.etag = etag
            self.lastModified = lastModified
            self.groups = groups
            self.selecting = selecting
            self.age = age
            self.lifetime = lifetime
            self.timeInUse = timeInUse
            self.source = source
            self.ttl = ttl
            self.isChosen = isChosen
            self.isInvalidated = isInvalidated
            self.decision = decision
            self.staleIfError = staleIfError
            self.staleRefusal = staleRefusal
        }
    }
}
