const most = 40;

/** listed is a value as names and texts, for a person who decides: no agent's JSON. */
export function listed(value: unknown, path: string[] = []): [string, string][] {
  if (value === undefined || value === null || value === "") return [];
  if (typeof value !== "object") return [[path.join(" › "), String(value)]];
  if (Array.isArray(value) && value.every((it) => typeof it !== "object")) return value.length ? [[path.join(" › "), value.join("\n")]] : [];
  return Object.entries(value).flatMap(([name, it]) => listed(it, Array.isArray(value) && value.length === 1 ? path : [...path, humane(name)]));
}

const humane = (name: string): string =>
  /^\d+$/.test(name) ? String(Number(name) + 1) : name.replaceAll("_", " ").replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();

/** Fields shows a value by its names. */
export function Fields({ label, value }: { label: string; value: unknown }) {
  const fields = listed(value);
  return (
    <div className="rounded-lg border border-line bg-code px-2.5 py-2 text-[12.5px]" role="group" aria-label={label}>
      <p className="font-medium wrap-anywhere">{label}</p>
      {fields.length > 0 && (
        <dl className="mt-1 max-h-64 space-y-1 overflow-auto" tabIndex={0}>
          {fields.slice(0, most).map(([name, text], index) => (
            <div key={index} className="grid grid-cols-[minmax(4rem,auto)_1fr] gap-x-3">
              <dt className="text-muted wrap-anywhere">{name}</dt>
              <dd className="min-w-0 whitespace-pre-wrap font-mono text-[12px] wrap-anywhere">{text}</dd>
            </div>
          ))}
          {fields.length > most && <p className="text-faint">… {fields.length - most}</p>}
        </dl>
      )}
    </div>
  );
}
