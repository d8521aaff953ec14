/** money is an amount of millionths of a dollar: cents, or four digits where less than a dollar is at stake. */
export const money = (micros: number): string => `$${(micros / 1e6).toFixed(micros !== 0 && Math.abs(micros) < 1e6 ? 4 : 2)}`;
