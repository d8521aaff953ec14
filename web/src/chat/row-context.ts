import { createContext, useContext } from "react";

/** OpenContext: what is looked for stands in this row, so that its parts are open until the reader decides otherwise. */
export const OpenContext = createContext(false);

export const useOpened = (): boolean => useContext(OpenContext);
