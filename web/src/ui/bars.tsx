/** Bar is one value of a chart, with its name and its value in words. */
export interface Bar {
  key: string;
  name: string;
  value: number;
  text: string;
}

/** Columns draws values side by side. It is for the eye: the same numbers stand in a table next to it. */
export function Columns({ bars }: { bars: Bar[] }) {
  const top = Math.max(...bars.map((it) => it.value), 0);
  const step = 10;
  const height = 60;
  return (
    <svg viewBox={`0 0 ${bars.length * step} ${height}`} preserveAspectRatio="none" className="h-32 w-full" aria-hidden="true">
      {bars.map((bar, index) => {
        const tall = top > 0 ? (bar.value / top) * height : 0;
        return (
          <g key={bar.key} className="fill-accent hover:brightness-125">
            <title>{`${bar.name}: ${bar.text}`}</title>
            <rect x={index * step} y={0} width={step} height={height} className="fill-transparent" />
            <rect x={index * step + 1} y={height - Math.max(tall, bar.value > 0 ? 1 : 0)} width={step - 2} height={Math.max(tall, bar.value > 0 ? 1 : 0)} />
          </g>
        );
      })}
      <rect x={0} y={height - 0.4} width={bars.length * step} height={0.4} className="fill-line-strong" />
    </svg>
  );
}

/** Share draws a part of a whole. Above the limit it is full. */
export function Share({ part, tone = "fill-accent" }: { part: number; tone?: string }) {
  return (
    <svg viewBox="0 0 100 4" preserveAspectRatio="none" className="h-1.5 w-full rounded-full" aria-hidden="true">
      <rect width={100} height={4} className="fill-raised" />
      <rect width={Math.min(100, Math.max(0, part * 100))} height={4} className={tone} />
    </svg>
  );
}
