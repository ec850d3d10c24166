// What a configuration says of placeholders, fallbacks and expected content, as the download core takes it.

internal import Configuration
internal import Content
internal import DemoMode
internal import DownloadCore

extension SeedTable {
    /// Reads the files that have not been read for this configuration yet. Blocks.
    /// - Throws: `PlanError` naming the file.
    mutating func phases(
        _ cache: CacheConfiguration,
        expect: ContentExpectation = .any
    ) throws(PlanError) -> PhasePlan? {
        var plan = PhasePlan(expect: expect)
        if let placeholder = cache.placeholder {
            plan.placeholder = try standIn(placeholder.answer)
            plan.patience = placeholder.after
        }
        if let fallback = cache.fallback { plan.fallback = try standIn(fallback) }
        return plan.isEmpty ? nil : plan
    }

    private mutating func standIn(_ configuration: StandInConfiguration) throws(PlanError) -> StandIn {
        if let known = standIns[configuration] { return known }
        do throws(DemoFileError) {
            let file = try DemoFile.load(path: configuration.file)
            let made = StandIn(
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
