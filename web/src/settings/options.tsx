/** Options is a choice among a few, all in sight. */
export function Options({
  name,
  value,
  options,
  onPick,
}: {
  name: string;
  value: string;
  options: { value: string; text: string }[];
  onPick: (value: string) => void;
}) {
  return (
    <fieldset className="flex flex-wrap items-center justify-between gap-x-4 gap-y-1">
      <legend className="float-left text-[13px] text-muted">{name}</legend>
      <div className="flex rounded-lg bg-raised p-0.5">
        {options.map((option) => (
          <label
            key={option.value}
            className={`cursor-pointer rounded-md px-3 py-1 text-[12.5px] font-medium has-focus-visible:outline-2 has-focus-visible:outline-accent
              ${option.value === value ? "bg-surface text-ink shadow-[0_1px_2px_rgb(0_0_0/0.12)]" : "text-muted hover:text-ink"}`}
          >
            <input type="radio" className="sr-only" name={name} checked={option.value === value} onChange={() => onPick(option.value)} />
            {option.text}
          </label>
        ))}
      </div>
    </fieldset>
  );
}
