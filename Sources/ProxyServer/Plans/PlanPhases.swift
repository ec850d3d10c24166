// Translates the placeholders, fallbacks and expected content of a configuration into the types of the download core.

import Configuration
import Content
import DemoMode
import DownloadCore

extension SeedTable {
    /// Reads the files that have not been read for this configuration yet. Blocks.
    /// - Throws: `PlanError` naming the file.
    mutating func phases(
        _ cache: CacheConfiguration,
        expect: ContentExpectation = .any,
        types: ExpectedTypes? = nil
    ) throws(PlanError) -> PhasePlan? {
        var plan = PhasePlan(expect: expect, types: types)
        if let placeholder = cache.placeholder {
            plan.placeholder = try standIn(placeholder.answer)
            plan.placeholderDelay = placeholder.after
        }
        if let fallback = cache.fallback { plan.fallback = try standIn(fallback) }
        return plan.isEmpty ? nil : plan
    }

    private mutating func standIn(_ configuration: StandInConfiguration) throws(PlanError) -> SubstituteResponse {
        if let known = standIns[configuration] { return known }
        do throws(DemoFileError) {
            let file = try DemoFile.load(path: configuration.file)
            let made = SubstituteResponse(
                path: file.path,
                status: configuration.status,
                bytes: file.bytes,
                contentType: file.contentType
            )
            standIns[configuration] = made
            return made
        } catch {
            throw .standIn(error)
        }
    }
}
