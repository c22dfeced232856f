/** A point for each run, by two columns. A rectangle chooses the runs in it, here and on all other tabs. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";

import { Empty } from "../../../ui/Notice";
import { Choice } from "../Choice";
import { type CompareProps, show } from "../props";
import { type Column, compareValues } from "../runs";
import { isWide } from "../scales";
import tools from "../tools.module.css";
import { Legend } from "./Legend";
import { BY_RUN, useColouring } from "./plot";
import { isLog, usualAxes } from "./plots";
import { ScatterPlot } from "./ScatterPlot";

export function ScatterTab(props: CompareProps): JSX.Element {
  const { view, columns, shown } = props;
  const usual = useMemo(() => usualAxes(columns), [columns]);
  const across = columns.get(view.across ?? "") ?? usual.find(isWide) ?? usual.find((one) => one.numbers) ?? usual[0];
  const up = columns.get(view.up ?? "") ?? usual.at(-1);
  const colour = useColouring(props);
  const order = useMemo(
    () => (across ? [...shown].sort((a, b) => compareValues(across.values[a]!, across.values[b]!)) : shown),
    [shown, across],
  );
  if (!across || !up) return <Empty title="There is nothing to put on the axes" />;
  const [logX, logY] = [isLog(across, view.logarithmic, view.linear), isLog(up, view.logarithmic, view.linear)];
  return (
    <>
      <div class={tools["tools"]}>
        <Choice
          label="Across"
          columns={columns}
          value={across.name}
          choose={(name) => show({ across: name }, { push: true })}
        />
        <LogBox column={across} log={logX} {...props} />
        <Choice label="Up" columns={columns} value={up.name} choose={(name) => show({ up: name }, { push: true })} />
        <LogBox column={up} log={logY} {...props} />
        <Choice
          label="Colour by"
          columns={columns}
          value={view.colour ?? colour.by?.name ?? BY_RUN}
          others={{ [BY_RUN]: "run" }}
          choose={(name) => show({ colour: name })}
        />
        {colour.by && <Legend column={colour.by} log={isLog(colour.by, view.logarithmic, view.linear)} />}
      </div>
      <ScatterPlot
        {...props}
        across={across}
        up={up}
        logX={logX}
        logY={logY}
        order={order}
        colourOf={colour.of}
        by={colour.by}
      />
    </>
  );
}

function LogBox({ column, log, view }: CompareProps & { column: Column; log: boolean }): JSX.Element | null {
  if (!column.numbers) return null;
  const others = (list: readonly string[]): string[] => list.filter((one) => one !== column.name);
  return (
    <label>
      <input
        type="checkbox"
        aria-label={`Logarithmic axis of ${column.label}`}
        checked={log}
        onChange={(event) =>
          show(
            event.currentTarget.checked
              ? { logarithmic: [...others(view.logarithmic), column.name], linear: others(view.linear) }
              : { logarithmic: others(view.logarithmic), linear: [...others(view.linear), column.name] },
          )
        }
      />
      log
    </label>
  );
}
