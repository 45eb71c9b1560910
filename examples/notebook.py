"""A notebook as a script, with cell marks for Jupyter, VS Code and Spyder. It also runs from top to bottom."""

# %%
from pathlib import Path

from errand import Errand, input_file_from

errand = Errand()  # ERRAND_API_KEY and ERRAND_BASE_URL
weather = input_file_from(Path(__file__).parent / "seattle-weather.csv")

# %% A question about a file
monthly = errand.interactions.create(
    "What was the average maximum temperature by month in seattle-weather.csv? Plot it, too.",
    tools=["code_execution"],
    files=[weather],
)
print(monthly.output)

# %% The chart of that run
for path in errand.files.save(monthly.files, "results", overwrite=True):
    print("saved", path)

# %% Another question, streamed
with errand.interactions.stream("How many days of each weather are in seattle-weather.csv?", tools=["code_execution"], files=[weather]) as stream:
    for event in stream:
        if event.event == "tool_call":
            print("●", event.data.name)
        elif event.event == "partial_output":
            print(event.data.text, end="")
print()

# %% The cost of both
for run in errand.interactions.list(page_size=2):
    print(run.interaction_id, run.status)
    break
