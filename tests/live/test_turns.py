"""Turns: one task in each iteration of the loop, in order, and timers in between."""

import asyncio

from pitboss.live.turns import next_turn


def test_tasks_go_on_in_order_and_what_becomes_ready_meanwhile_does_not_wait_for_the_last() -> None:
    async def main() -> list[object]:
        told: list[object] = []

        async def work(number: int) -> None:
            await next_turn()
            told.append(number)
            if number == 1:
                asyncio.get_running_loop().call_soon(told.append, "timer")

        tasks = [asyncio.create_task(work(number)) for number in range(5)]
        await asyncio.sleep(0)
        tasks[3].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return told

    told = asyncio.run(main())
    assert [each for each in told if each != "timer"] == [0, 1, 2, 4]
    assert told.index("timer") < told.index(4)
    assert asyncio.run(main()) == told  # on another loop
