// A browser sends its cookie to every port of a host, so the cookie alone opens nothing. The proof is the login's
// second secret: it lies in the storage of this origin, which pages of other ports cannot read, and goes with every request.

const place = "thole.proof"; // the login page writes it too

export function proof(): string {
  try {
    return localStorage.getItem(place) ?? "";
  } catch {
    return ""; // storage is forbidden: nobody is logged in
  }
}

export const keepProof = (value: string): void => localStorage.setItem(place, value);
export const dropProof = (): void => localStorage.removeItem(place);

export const proofHeader = (value: string): Record<string, string> => (value ? { "thole-proof": value } : {});
