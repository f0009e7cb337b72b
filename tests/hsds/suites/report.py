"""What came out of the tests of a suite, and whether all of it is as it should be."""

import collections

from known import REASONS, TESTS


class Report:
    def __init__(self, suite):
        self.suite, self.is_sound = suite, True

    def say(self, text):
        print(f"{self.suite}: {text}", flush=True)

    def fail(self, text):
        self.is_sound = False
        self.say(text)

    def results(self, results):
        counts = collections.Counter(results.values())
        self.say(f"{len(results)} tests on HSDS: " + ", ".join(f"{n} {what}" for what, n in counts.most_common()))
        if not counts["passed"]:
            self.fail("no test passes on HSDS")

    def requests(self, compared):
        """The requests, by the reasons for which their answers differ."""
        equal = sum(not one.differences for one in compared)
        without = [one for one in compared if None in one.reasons()]
        self.say(f"{len(compared)} requests that only read: {equal} answers equal, "
                 f"{len(compared) - equal - len(without)} differ with a reason, {len(without)} without")
        counts = collections.Counter(reason for one in compared for reason in one.reasons() if reason)
        for reason, n in counts.most_common():
            self.say(f"    {n:5} {reason}: {REASONS[reason]}")
        for one in without[:40]:
            found = next(found for found in one.differences if found[3] is None)
            self.fail(f"{one.test}: {one.request.short()}\n        {found[0]}\n        HSDS   {found[1]!s:.300}\n"
                      f"        h5live {found[2]!s:.300}")

    def answered(self, on_hsds, with_ours):
        """The tests whose reading requests `h5live serve` has answered."""
        passed = {name for name, result in on_hsds.items() if result == "passed"}
        lost = sorted(name for name in passed if with_ours.get(name) != "passed")
        self.say(f"{len(passed) - len(lost)} of the {len(passed)} tests that pass on HSDS pass with the answers of h5live "
                 f"serve to all that only reads; {len(lost)} do not:")
        counts = collections.defaultdict(list)
        for name in lost:
            short = name.split("::", 1)[-1]
            counts[TESTS.get(short)].append(short)
        for reason, names in sorted(counts.items(), key=lambda item: -len(item[1])):
            if reason is None:
                self.fail(f"    without a reason: {', '.join(names)}")
            else:
                self.say(f"    {reason}: {', '.join(names)}")

    def only_reading(self, on_hsds, with_ours, reading):
        """The tests that make only requests that read, so that `h5live serve` alone has answered them."""
        passed = [name for name in reading if on_hsds.get(name) == "passed"]
        ours = sum(with_ours.get(name) == "passed" for name in passed)
        self.say(f"{len(passed)} of these make only requests that read: {ours} pass")
