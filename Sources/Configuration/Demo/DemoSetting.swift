// A setting of demo answers and faults that an operator changes while the daemon runs.

import Matching
package import Policies

/// One key of a service or an endpoint with another value.
package struct DemoSetting: Sendable, Equatable {
    package enum Key: String, Sendable, CaseIterable {
        /// `on` or `off`.
        case enabled
        case latency
        case status
        /// That of failures.
        case chance
        /// The name of a fault profile, or `off`: of every answer, whatever its source.
        case faults

        /// All of them, in words.
        package static var names: String { allCases.map(\.rawValue).joined(separator: ", ") }
    }

    private enum Value: Sendable, Equatable {
        case enabled(Bool)
        case latency(LatencyPolicy)
        case status(Int)
        case chance(Double)
        /// Nil: none.
        case faults(profile: String?)
    }

    package let key: Key
    /// As it was written.
    package let text: String
    private let value: Value

    /// - Parameter text: as a configuration file would have it.
    /// - Throws: what is wrong with the value, and what to write instead.
    package init(_ key: Key, _ text: String) throws(Lifetimes.Malformed) {
        self.key = key
        self.text = text
        do throws(ScalarProblem) {
            switch key {
            case .enabled:
                guard ["on", "off"].contains(text) else { throw ScalarProblem("'\(text)' is neither on nor off") }
                value = .enabled(text == "on")
            case .latency: value = .latency(try Units.distribution(text))
            case .status:
                guard let status = Int(text), 200...599 ~= status else {
                    throw ScalarProblem("'\(text)' is no status of an answer; write a number from 200 to 599")
                }
                value = .status(status)
            case .chance: value = .chance(try Units.share(text))
            case .faults:
                guard !text.isEmpty else {
                    throw ScalarProblem("write the name of a fault profile, such as flaky-mobile, or off")
                }
                value = .faults(profile: text == "off" ? nil : text)
            }
        } catch {
            throw Lifetimes.Malformed(description: error.message)
        }
    }

    /// It is about answers of demo mode, and changes nothing where there are none.
    package var needsDemoAnswers: Bool { key != .faults }

    /// Why the setting cannot be with this configuration, and what to write instead; nil where it can.
    package func problem(with configuration: Configuration) -> String? {
        if case .latency(let policy) = value, case .learned(let learned) = policy.shape, let source = learned.source {
            return Resolver.problem(ofLearned: source, among: configuration.learnablePlaces).map { "latency \($0)" }
        }
        let profiles = configuration.faultProfiles
        guard case .faults(let name?) = value, profiles[name] == nil else { return nil }
        let known = profiles.keys.sorted()
        let near = Suggestions.nearest(to: name, among: known).map { "did you mean '\($0)'?" }
        return "there is no fault profile '\(name)'; \(near ?? "there are \(known.joined(separator: ", ")), and off")"
    }

    /// Changes a service with all its endpoints.
    package func apply(to service: inout ServiceConfiguration, _ profiles: [String: [FaultPolicy]]) {
        apply(to: &service.settings, profiles)
        for index in service.endpoints.indices { apply(to: &service.endpoints[index], profiles) }
    }

    /// Changes one endpoint.
    package func apply(to endpoint: inout EndpointConfiguration, _ profiles: [String: [FaultPolicy]]) {
        apply(to: &endpoint.settings, profiles)
    }

    /// Where there are no demo answers, there still are none.
    private func apply(to settings: inout RouteSettings, _ profiles: [String: [FaultPolicy]]) {
        switch value {
        case .enabled(let isOn): settings.demo.enabled = isOn && settings.demo.hasAnswer
        case .faults(let profile): settings.faults = profile.map { profiles[$0] ?? settings.faults } ?? []
        case .latency, .status, .chance:
            apply(to: &settings.demo.answer)
            for index in settings.demo.rules.indices { apply(to: &settings.demo.rules[index]) }
        }
    }

    private func apply(to rule: inout DemoRuleConfiguration) {
        switch value {
        case .enabled, .faults: break
        case .latency(let policy): rule.latency = policy
        case .status(let status):
            // In place of several answers, and of what a collection would answer, which have statuses of their own.
            rule.choice = .one
            rule.answer.collection = nil
            rule.answer.status = status
        case .chance(let chance):
            if rule.failure == nil { rule.failure = FailureConfiguration(SectionReader(nothingOf: KeyTable.failure)) }
            rule.failure?.chance = chance
        }
    }
}
