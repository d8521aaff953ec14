// The form that a tool's server asks for: one flat object of the types that MCP names, and what may stand in each field.

export interface Choice {
  value: string;
  title: string;
}

export interface Field {
  name: string;
  title: string;
  description?: string;
  required: boolean;
  kind: "text" | "number" | "integer" | "boolean" | "one" | "many";
  choices: Choice[];
  format?: string;
  /** Bounds of a number, of a text's length, or of how many are chosen. */
  min?: number;
  max?: number;
  initial: Given;
}

/** Given is what a person put into a field, as it stands there. */
export type Given = string | boolean | string[];

/** Fault names what is wrong with a field, with the bound that it misses. */
export interface Fault {
  key: "required" | "number" | "integer" | "least" | "most" | "short" | "long" | "few" | "many" | "email" | "uri" | "date";
  n?: number;
}

type Member = Record<string, unknown>;
const member = (value: unknown): Member => (typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Member) : {});
const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
const count = (value: unknown): number | undefined => (typeof value === "number" && Number.isFinite(value) ? value : undefined);

/** choicesOf reads the choices of a field, with their titles in either form; none where one of them cannot be read. */
function choicesOf(it: Member): Choice[] | undefined {
  if (Array.isArray(it.enum)) {
    const names = Array.isArray(it.enumNames) ? it.enumNames : [];
    const found = it.enum.map((value, index) => ({ value, title: text(names[index]) ?? value }));
    return found.every((one) => typeof one.value === "string") ? found : undefined;
  }
  const several = it.oneOf ?? it.anyOf;
  if (!Array.isArray(several)) return undefined;
  const found = several.map(member).map((one) => ({ value: one.const as string, title: text(one.title) ?? (one.const as string) }));
  return found.every((one) => typeof one.value === "string") ? found : undefined;
}

function fieldOf(name: string, it: Member, required: boolean): Field | undefined {
  const base = { name, required, title: text(it.title) ?? name, description: text(it.description), choices: [] as Choice[] };
  if (it.type === "boolean") return { ...base, kind: "boolean", initial: it.default === true };
  if (it.type === "number" || it.type === "integer")
    return { ...base, kind: it.type, min: count(it.minimum), max: count(it.maximum), initial: count(it.default)?.toString() ?? "" };
  if (it.type === "array") {
    const choices = choicesOf(member(it.items));
    const initial = (Array.isArray(it.default) ? it.default : []).filter((one) => choices?.some(({ value }) => value === one));
    return choices && { ...base, kind: "many", choices, min: count(it.minItems), max: count(it.maxItems), initial };
  }
  if (it.type !== "string" && it.type !== undefined) return undefined;
  const choices = choicesOf(it);
  const given = text(it.default) ?? "";
  if (choices) return { ...base, kind: "one", choices, initial: choices.some(({ value }) => value === given) ? given : "" };
  if (it.type === undefined || it.enum || it.oneOf || it.anyOf) return undefined;
  const format = text(it.format);
  return { ...base, kind: "text", format, min: count(it.minLength), max: count(it.maxLength), initial: format === "date-time" ? localTime(given) : given };
}

/** fieldsOf reads a schema. It is undefined where a part of it has a type that MCP does not name. */
export function fieldsOf(schema: unknown): Field[] | undefined {
  const { properties, required } = member(schema);
  const needed = Array.isArray(required) ? required : [];
  const fields = Object.entries(member(properties)).map(([name, it]) => fieldOf(name, member(it), needed.includes(name)));
  return fields.every((it) => it !== undefined) && needed.every((name) => fields.some((it) => it.name === name)) ? fields : undefined;
}

/** localTime is a moment as the field of a browser has it, in the zone of the person who looks at it. */
function localTime(given: string): string {
  const at = new Date(given);
  if (!given || Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

const checks: Record<string, { key: Fault["key"]; ok: (value: string) => boolean }> = {
  email: { key: "email", ok: (value) => /^[^\s@]+@[^\s@]+$/.test(value) },
  uri: { key: "uri", ok: (value) => /^[a-z][a-z0-9+.-]*:\S+$/i.test(value) && URL.canParse(value) },
  date: { key: "date", ok: (value) => /^\d{4}-\d\d-\d\d$/.test(value) && !Number.isNaN(Date.parse(value)) },
  "date-time": { key: "date", ok: (value) => !Number.isNaN(Date.parse(value)) },
};

const bound = (n: number, { min, max }: Field, low: Fault["key"], high: Fault["key"]): Fault | undefined =>
  min !== undefined && n < min ? { key: low, n: min } : max !== undefined && n > max ? { key: high, n: max } : undefined;

/** read is a field's value for the answer, undefined where it was left out, or what is wrong with it. */
export function read(field: Field, given: Given): { value?: unknown; fault?: Fault } {
  if (typeof given === "boolean") return { value: given };
  if (Array.isArray(given)) {
    if (given.length === 0 && !field.required) return {};
    return { value: given, fault: bound(given.length, field, "few", "many") };
  }
  if (field.kind === "one" || field.kind === "text") {
    if (given === "") return field.required ? { fault: { key: "required" } } : {};
    const check = checks[field.format ?? ""];
    const fault = check && !check.ok(given) ? { key: check.key } : field.kind === "text" ? bound([...given].length, field, "short", "long") : undefined;
    return { value: field.format === "date-time" && !fault ? new Date(given).toISOString() : given, fault };
  }
  if (given.trim() === "") return field.required ? { fault: { key: "required" } } : {};
  const value = Number(given.trim());
  if (!Number.isFinite(value)) return { fault: { key: "number" } };
  if (field.kind === "integer" && !Number.isSafeInteger(value)) return { fault: { key: "integer" } };
  return { value, fault: bound(value, field, "least", "most") };
}
