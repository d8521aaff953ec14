import{r as e,t}from"./chunk-QB3YPZ4I-DfLLZPg1.js";import"./chunk-TU62E6Q5-DBeZZ_0_.js";import"./draw-BlJv85En.js";import"./chunk-HFQBQIA3-CSipWEqP.js";import"./chunk-M57EVK23-DHgDPQ12.js";import"./chunk-DQASFODM-DWEQgpaH.js";import"./chunk-LEVMRMFU-CZ0SAChw.js";import"./chunk-AXFCVDMN-CqkXWlPF.js";import"./chunk-X4PVCEUW-DsrW46N_.js";import"./chunk-STOXU5M4-BRAyTIQb.js";import"./chunk-R3KSYZAL-BFZEQax-.js";import"./chunk-6MUBBAK2-DTwqn2k2.js";import"./chunk-BG4553SI-CxBwBy09.js";import"./d3-selection-COWvaQNI.js";import{n}from"./chunk-Y2CYZVJY-DsF7k-Jl.js";var r=t({styles:n(t=>`${e(t)}
  .swimlane.cluster:not([data-color-id]) rect {
    stroke: ${t.clusterBorder} !important;
  }
  [data-look="neo"].cluster rect {
    filter: none;
  }
`,`getStyles`)});export{r as diagram};